"""A scripted model in Python: its answers depend on the results of its calls.

%%agent -m scripted:scripts/first-agent.py
Make the area exact

The generator yields the model's answers and receives the results of their calls. It runs from its beginning at every
request, so the same results must lead it the same way: no counting, waiting or writing.
"""

import re

from opencode_jupyter.agent.scripted import call, say, thought

model = {"name": "First lesson", "context": 32000, "cost": {"input": 1, "output": 5}}


def script(prompt):
    (read,) = yield say(
        thought("I should see the file before I change it."),
        "I will look at the file first.",
        call("read", filePath="shapes.py"),
    )
    if read.failed:  # an error, or a denial
        yield f"That did not work: {read.output}"
        return
    constant = re.search(r"return (3\.14\d*) \* r", read.output)
    if constant is None:
        exact = "math.pi" in read.output
        yield (
            "The area is exact already. Nothing is left to do." if exact else "There is no rough constant in shapes.py."
        )
        return
    edits = yield say(
        f"The constant {constant[1]} is rough. I will put pi in its place.",
        call("edit", filePath="shapes.py", oldString=f"{constant[1]} * r * r", newString="math.pi * r ** 2"),
        call("edit", filePath="shapes.py", oldString="def area(r)", newString="import math\n\n\ndef area(r)"),
    )
    if any(edit.outcome in ("rejected", "corrected", "denied") for edit in edits):
        yield "I leave it at that, since you refused."
        return
    (check,) = yield say(
        "Now I check the result.",
        call(
            "bash",
            command='python -c "import shapes; print(shapes.area(2))"',
            description="Prints the area of a circle",
        ),
    )
    area = re.search(r"12\.56\d+", check.output)
    yield (
        f"Done. The area of a circle with radius 2 is now {area[0]}."
        if area
        else f"The check went wrong: {check.output.strip()}"
    )
