"""The scripted model of the practice folder: it repairs, searches with a sub-agent, plans, and answers about data.

Its answers depend on the results of its calls. The tools it calls really run.
"""

import re

from opencode_jupyter.agent.scripted import call, say, thought

model = {"name": "Assistant", "context": 32000, "cost": {"input": 1, "output": 5}}  # dollars a million tokens
speed = 5


def script(prompt):
    for pattern, lesson in LESSONS.items():
        match = re.search(pattern, prompt.text)
        if match:
            yield from lesson(*match.groups())
            return
    yield "I only know the prompts of this lesson."


def fix():
    """Find out why a check fails, and fix it."""
    check = call("bash", command="python3 check.py", description="Runs the check")
    results = yield say(
        thought("I should see it fail before I change anything."),
        "I run the check and read the code that it tests.",
        check,
        call("read", filePath="readings.py"),
    )
    if not any("len(values) - 1" in result.output for result in results):
        yield "I see nothing wrong in readings.py."
        return
    (edit,) = yield say(
        "The mean is divided by one too few.",
        call("edit", filePath="readings.py", oldString="(len(values) - 1)", newString="len(values)"),
    )
    if edit.failed:
        yield f"I could not finish: {first_line(edit.output)}"
        return
    (result,) = yield say("Now the check again.", check)
    mean = re.search(r"mean: ([\d.]+)", result.output)
    if mean:
        yield (
            "Fixed. `mean` divided by `len(values) - 1`; it divides by `len(values)` now.\n"
            f"The mean of readings.txt is **{mean[1]}**, and all checks pass."
        )
    else:
        yield f"The check prints: {last_line(result.output)}"


def which_line():
    (result,) = yield call("grep", pattern="return sum", include="readings.py")
    line = re.search(r"Line (\d+): *(.+)", result.output)
    yield f"Line {line[1]}: `{line[2]}`" if line else "There is no such line any more."


def delegate():
    """Let a sub-agent search."""
    (result,) = yield say(
        "I let the explore agent look.",
        call(
            "task",
            description="Find uses of mean",
            subagent_type="explore",
            prompt="Find every file that uses the function mean. Report their names.",
        ),
    )
    files = re.search("files: (.+)", result.output)
    yield (
        f"According to the explore agent: {files[1]}"
        if files
        else f"The explore agent found nothing: {last_line(result.output)}"
    )


def plan():
    """Try to edit in plan mode."""
    yield say("I read what is there.", call("read", filePath="readings.py"))
    new = "def median(values): ...\n\n\ndef load"
    (edit,) = yield say(
        "I try to write it at once.", call("edit", filePath="readings.py", oldString="def load", newString=new)
    )
    if edit.outcome in ("denied", "invalid"):
        yield (
            "I cannot edit in plan mode. My plan:\n\n"
            "1. Add `median(values)` to readings.py, from `statistics`.\n"
            "2. Add a check to check.py."
        )
    else:
        yield "Written."


def report(file):
    """Give a structured answer."""
    (result,) = yield call("bash", command=f"wc -l {file}", description="Counts lines")
    count = re.search(r"(\d+) ", result.output)
    if count:
        yield call("StructuredOutput", file=file, lines=int(count[1]), remarks=["one number a line"])
    else:
        yield f"There is no {file}."


def which_sensor(name):
    """Compute with the notebook's variables."""
    results = yield say(
        "I look at the data frame, then compute.",
        call("inspect", name=name),
        call(
            "python",
            code=f'by_sensor = {name}.groupby("sensor").value.mean()\nby_sensor',
            description="Means by sensor",
        ),
    )
    table = results[1].output.strip()
    yield f"By sensor:\n\n```\n{table}\n```\n\nThe table is in your variable `by_sensor`."


def clean_up():
    """Try what a rule denies."""
    (result,) = yield call("bash", command="rm readings.txt", description="Removes the data")
    if result.outcome == "denied":
        yield "I cannot remove it: a rule denies it."
    else:
        yield "I was not allowed to remove it." if result.failed else "Removed."


def count_lines(file):
    (result,) = yield call("bash", command=f"wc -l {file}", description="Counts lines")
    count = re.search(r"(\d+) ", result.output)
    yield f"{file} has {count[1]} lines." if count else f"{file} cannot be counted."


def explore(prompt):
    """The turns of the sub-agent."""
    (result,) = yield call("grep", pattern=r"mean\(", include="*.py")
    yield "files: readings.py, check.py" if "check.py" in result.output else f"files: {last_line(result.output)}"


def first_line(text):
    return text.strip().splitlines()[0]


def last_line(text):
    return text.strip().splitlines()[-1]


agents = {"explore": explore}
LESSONS = {
    r"(?i)check\.py fails": fix,
    r"(?i)which line": which_line,
    r"(?i)who uses": delegate,
    r"(?i)median": plan,
    r"(?i)report on (\w+\.\w+)": report,
    r"(?i)which sensor.*(\bdf\b)": which_sensor,
    r"(?i)clean up": clean_up,
    r"(?i)count the lines of (\w+\.\w+)": count_lines,
}
