"""Print the mean weight of each species."""

import csv
from collections import defaultdict


def weights(path):
    """Collect the weights of each species, in grams."""
    by_species = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            weight = row["Body Mass (g)"]
            by_species[row["Species"]].append(float(weight))
    return by_species


# TODO: print kilograms
print("Mean wieght")
for species, grams in weights("penguins.csv").items():
    print(f"{species:<45}{sum(grams) / len(grams):7.1f} g")
