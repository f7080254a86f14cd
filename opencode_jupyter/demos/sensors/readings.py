"""Readings of a sensor."""


def load(path):
    with open(path) as file:
        return [float(line) for line in file]


def mean(values):
    return sum(values) / (len(values) - 1)
