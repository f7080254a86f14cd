"""The scripted model of the practice folder: it knows a few requests. The tools it calls really run."""

import re

from opencode_jupyter.agent.scripted import call, say, thought

model = {"name": "Assistant", "context": 32000, "cost": {"input": 1, "output": 5}}  # dollars a million tokens
speed = 5


def script(prompt):
    for pattern, answer in ANSWERS.items():
        if re.search(pattern, prompt.text):
            yield from answer()
            return
    yield "I am scripted, and know only the requests of this notebook. For yours, name a real model: `%agent -m`."


def fix():
    """Find out why summary.py fails, and repair it."""
    run = call("bash", command="python3 summary.py", description="Runs the program")
    results = yield say(
        thought("I should see it fail before I change anything."),
        "I run the program and read its code.",
        run,
        call("read", filePath="summary.py"),
    )
    if "float(weight)" not in results[1].output or "if weight" in results[1].output:
        yield "I see nothing wrong in summary.py."
        return
    line = '            by_species[row["Species"]].append(float(weight))'
    (edit,) = yield say(
        "Some weights are `NA`: those penguins were not weighed. They must be left out.",
        call(
            "edit",
            filePath="summary.py",
            oldString=line,
            newString='            if weight != "NA":\n    ' + line,
        ),
    )
    if edit.failed:
        yield f"I could not repair it: {first_line(edit.output)}"
        return
    (result,) = yield say("Now the program again.", run)
    if result.failed or "Gentoo" not in result.output:
        yield f"The program was not run: {first_line(result.output)}"
    else:
        yield f"Repaired. Two penguins have no weight; they are left out now.\n\n```\n{result.output.strip()}\n```"


def find_problems():
    """Look at the data frame `penguins`."""
    results = yield say(
        "I look at the columns, then count what is missing or useless.",
        call("inspect", name="penguins"),
        call("python", code=PROBLEMS, description="Counts missing and constant values"),
    )
    if any(result.failed for result in results):
        yield f"I could not look at it: {first_line(results[-1].output)}"
        return
    yield (
        "Four things to clean:\n\n"
        "1. **Missing values**: 2 penguins were not measured, 11 have no sex.\n"
        "2. **Columns without information**: `Region` and `Stage` have one value each.\n"
        "3. **Species** hold the common and the Latin name: `Adelie Penguin (Pygoscelis adeliae)`.\n"
        "4. **Dates** are text."
    )


PROBLEMS = """
missing = penguins.isna().sum()
print(missing[missing > 0])
[column for column in penguins if penguins[column].nunique() == 1]
"""


def clean():
    """Write clean.py and apply it to the data frame."""
    (write,) = yield say(
        "I write the steps into a file, so that you can read and repeat them.",
        call("write", filePath="clean.py", content=CLEAN),
    )
    if write.failed:
        yield f"I could not write clean.py: {first_line(write.output)}"
        return
    code = 'from clean import clean\n\ntidy = clean(penguins)\ntidy.groupby("species").size()'
    (result,) = yield say(call("python", code=code, description="Cleans the data frame"))
    if result.failed:
        yield f"The code was not run: {first_line(result.output)}"
    else:
        yield "The clean data is in your variable `tidy`; `penguins` is unchanged. The steps are in `clean.py`."


CLEAN = '''"""Clean the table of penguins."""

import pandas as pd

NAMES = {
    "Species": "species",
    "Island": "island",
    "Date Egg": "date",
    "Culmen Length (mm)": "bill_mm",
    "Flipper Length (mm)": "flipper_mm",
    "Body Mass (g)": "weight_g",
    "Sex": "sex",
}


def clean(table):
    """Return a tidy copy: useful columns, short names, measured penguins only."""
    tidy = table[list(NAMES)].rename(columns=NAMES).dropna(subset=["weight_g"])
    tidy["species"] = tidy.species.str.split().str[0]
    tidy["sex"] = tidy.sex.str.lower()
    tidy["date"] = pd.to_datetime(tidy.date)
    return tidy
'''


def plot():
    """Draw the clean data."""
    (result,) = yield call("python", code=PLOT, description="Plots weight against flipper length")
    if result.failed:
        yield f"I could not draw it: {first_line(result.output)}"
    else:
        yield "Longer flippers, heavier penguins; Gentoos are a group of their own."


PLOT = """
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 4))
for species, group in tidy.groupby("species"):
    axes.scatter(group.flipper_mm, group.weight_g, s=14, label=species)
axes.set(xlabel="flipper (mm)", ylabel="weight (g)")
axes.legend()
figure
"""


def first_line(text):
    return text.strip().splitlines()[0]


ANSWERS = {
    r"(?i)summary\.py fails": fix,
    r"(?i)problems": find_problems,
    r"(?i)clean": clean,
    r"(?i)plot|draw": plot,
}
