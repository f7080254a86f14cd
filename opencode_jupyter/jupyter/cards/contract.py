"""The card contract: the JSON that cards are drawn from, live and saved, with every field documented.

The kernel builds it (`call_json`, `run_json`), a notebook keeps it (`saved`), and TypeScript draws it with types that
the front end's build generates from here, `run_contract` and `contract_schema`.

These are typed dictionaries, not models, so that building a card costs nothing more. Nothing imports this module when
tools run. A field that is `NotRequired` may be absent: cards saved by earlier versions lack what they did not know.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

LIVE = Field(json_schema_extra={"live": True})
"""Marks a field that only a live card shows."""

Action = TypeAliasType("Action", Literal["allow", "deny", "ask"])
Reply = TypeAliasType("Reply", Literal["once", "always", "reject"])
Outcome = TypeAliasType(
    "Outcome",
    Literal[
        "completed", "failed", "denied by a rule", "denied by you", "denied by policy", "refused by a hook",
        "dismissed by you", "unanswered", "stopped", "interrupted", "timed out", "invalid arguments", "dry run",
        "cancelled", "ended",
    ],
)  # fmt: skip


# ---------------------------------------------------------------------- what waits for a person


class CardRule(TypedDict):
    """A permission rule and where it was written."""

    permission: str
    """The permission it is about, possibly with wildcards: `edit`, `mcp_*`."""
    pattern: str
    """The pattern it matches: a path, a command, `*`."""
    action: Action
    """What it decides."""
    origin: str
    """Where a person finds it: `opencode.json`, `this notebook's default`, `this session`."""


_MovedFile = TypedDict(
    "_MovedFile", {"from": NotRequired[Annotated[str, Field(description="The earlier name of a moved file.")]]}
)


class CardDiff(_MovedFile):
    """What a call does to one file."""

    path: str
    """The file, as a person writes it."""
    type: str
    """`add`, `update`, `move` or `delete`."""
    diff: str
    """The unified diff."""
    additions: NotRequired[int]
    """Lines added."""
    deletions: NotRequired[int]
    """Lines removed."""


class CardAsk(TypedDict):
    """A permission request that waits for a person's approval."""

    id: str
    """The request's id; random, valid in one kernel process only."""
    digest: str
    """Digest of what is requested; a reply carries it, so that a stale reply is noticed."""
    permission: str
    """The permission: `edit`, `bash`, `external_directory`."""
    question: NotRequired[str]
    """What a person is asked: `Run this command?`; empty or absent: the permission by its name."""
    patterns: list[str]
    """What exactly is to be allowed now."""
    always: list[str]
    """What "for this session" would allow from then on; empty: that reply is not possible."""
    command: NotRequired[str]
    """The command in full, where the tool runs one."""
    diff: NotRequired[str]
    """The unified diff in full, where the tool changes a file."""
    diffs: NotRequired[list[CardDiff]]
    """One diff for each file, where it changes several."""
    path: NotRequired[str]
    """The file concerned, as a person writes it."""
    rule: NotRequired[CardRule]
    """The rule that requires approval."""
    rules: NotRequired[list[CardRule]]
    """Where there are several patterns: the rule that decides each, in their order."""
    editable: NotRequired[Annotated[bool, LIVE]]
    """Whether a person may change the call's arguments."""
    input: NotRequired[Annotated[dict[str, Any], LIVE]]
    """The arguments in full, where the card's own are cut."""
    asked: int
    """When it was requested, in milliseconds since 1970 (the kernel's clock)."""
    position: NotRequired[tuple[int, int]]
    """Its position among the pending requests, counted from 1, and how many are pending: `[2, 3]`."""


class CardOption(TypedDict):
    """One answer to choose."""

    label: str
    """The answer."""
    description: str
    """What choosing it means; may be empty."""


class CardQuestion(TypedDict):
    """One question to the person."""

    question: str
    """The whole question."""
    header: str
    """A word or two for it; may be empty."""
    options: list[CardOption]
    """The answers to choose from."""
    multiple: NotRequired[bool]
    """Whether several may be chosen."""
    custom: NotRequired[bool]
    """False: only the options are accepted; absent: free text too."""


class CardQuestions(TypedDict):
    """Questions that are asked together and wait for their answers."""

    id: str
    """The request's id; valid in one kernel process only."""
    digest: str
    """Digest of the questions; an answer carries it, so that a stale one is noticed."""
    questions: list[CardQuestion]
    """The questions, in order."""
    asked: int
    """When they were asked, in milliseconds since 1970 (the kernel's clock)."""
    position: NotRequired[tuple[int, int]]
    """Their position among the pending requests, counted from 1, and how many are pending."""


# ---------------------------------------------------------------------- what a call shows


class CardAsked(TypedDict):
    """A question that was asked."""

    question: str
    """The whole question."""
    header: str
    """A word or two for it; may be empty."""


class CardAnswered(TypedDict):
    """Questions that a call asked, and their answers."""

    questions: list[CardAsked]
    """The questions, in order."""
    answers: NotRequired[list[list[str]]]
    """For each question what was chosen or typed; empty: not answered. Absent: dismissed."""
    by: str
    """How the answer arrived."""


class CardTask(TypedDict):
    """One task of a to-do list."""

    content: str
    """What is to be done."""
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    """Its state."""
    priority: str
    """`high`, `medium`, `low`, or another word; may be empty."""


class CardTable(TypedDict):
    """Rows of a result, as text; names and values of an object where no column has a name."""

    name: NotRequired[str]
    """What kind of value it is: `DataFrame`, `dict`."""
    columns: list[str]
    """The columns' names."""
    types: NotRequired[list[str]]
    """The type of each column; empty: not known."""
    index: NotRequired[int]
    """How many of the columns, from the first on, name the row."""
    rows: list[list[str]]
    """The first rows."""
    total: int
    """How many rows there are in all."""
    width: NotRequired[int]
    """How many columns there are in all, those that name the row left out."""


class CardCell(TypedDict):
    """A cell of a notebook that was read."""

    index: int
    """Its position in the notebook, from 0."""
    id: NotRequired[str]
    """The cell's id."""
    type: str
    """`code`, `markdown`, `raw`, or another word."""
    executed: NotRequired[int]
    """The number of its last run."""
    line: int
    """The line of the call's output, from 0, where its source begins."""
    source: int
    """Lines of its source."""
    output: int
    """Lines of its outputs' text, which begin one line after the source."""
    outputs: NotRequired[int]
    """How many outputs it has."""


class CardCells(TypedDict):
    """A notebook that was read; the text of its cells is in the call's output."""

    cells: list[CardCell]
    """The cells that were read."""
    total: int
    """How many cells the notebook has."""
    language: str
    """The language of its code; may be empty."""
    notes: list[str]
    """What else to know of it, such as that it is open with unsaved changes."""


class CardDecision(TypedDict):
    """A permission decision that was made for this call."""

    permission: str
    """The permission that was requested."""
    patterns: list[str]
    """The patterns it was requested for."""
    action: Literal["allow", "deny"]
    """What was decided."""
    reply: NotRequired[Reply]
    """The person's reply, where a person (or a policy in their place) gave one."""
    by: str
    """Who decided: `you` (or how a person's reply arrived: `card`, `control`, `prompt`), `rule`, `policy`, …"""
    rule: NotRequired[CardRule]
    """The rule that decided, where one did."""
    rules: NotRequired[list[CardRule]]
    """Where there are several patterns: the rule for each, in their order."""
    message: NotRequired[str]
    """The person's reason, sent to the model."""
    revised: NotRequired[bool]
    """No reply: the person changed the call's arguments, and approval was requested again."""
    note: NotRequired[str]
    """What else happened, such as the file that a rule was saved in."""


class CardProgress(TypedDict):
    """How far the tool reports to be."""

    value: float
    """Done so far, in the tool's own unit."""
    total: NotRequired[float]
    """All there is to do, in the same unit; absent: not known."""
    message: NotRequired[str]
    """What it does now, one line."""


class CardSpill(TypedDict):
    """The file that keeps the whole of an output that was cut."""

    path: str
    """Its absolute path on the kernel's machine."""
    bytes: int
    """Size of the whole, in bytes."""
    lines: int
    """Lines of the whole; 0: not counted."""
    line: int
    """The first line that is not shown, counted from 1."""
    url: NotRequired[str]
    """The address under which the server serves it, where there is one."""
    writing: NotRequired[Annotated[bool, LIVE]]
    """It is still being written."""


class CardFile(TypedDict):
    """A file that a card links."""

    path: str
    """Its absolute path on the kernel's machine."""
    line: NotRequired[int]
    """The line that the call is about, from 1."""


class CardAttachment(TypedDict):
    """A file or picture that the tool returned."""

    id: NotRequired[Annotated[str, LIVE]]
    """OpenCode's id of the file part."""
    sessionID: NotRequired[Annotated[str, LIVE]]
    """The session it belongs to."""
    messageID: NotRequired[Annotated[str, LIVE]]
    """The message it belongs to."""
    type: NotRequired[Literal["file"]]
    """OpenCode's type of the part."""
    mime: str
    """Its MIME type."""
    url: str
    """A `data:` URL, or its address; empty where a notebook does not keep it."""
    filename: NotRequired[str]
    """Its name."""


class CardTime(TypedDict):
    """When a call ran, in milliseconds since 1970 (the kernel's clock)."""

    start: int
    """When it began."""
    end: NotRequired[int]
    """When it ended."""


class CardState(TypedDict):
    """The state of a tool call, as OpenCode's tool part has it."""

    status: Literal["pending", "running", "completed", "error"]
    """How far the call is."""
    input: dict[str, Any]
    """The arguments."""
    raw: NotRequired[str]
    """The arguments as a model wrote them so far, while `pending`."""
    title: NotRequired[str]
    """The tool's own one-line title of the call."""
    output: NotRequired[str]
    """What the model sees."""
    error: NotRequired[str]
    """What went wrong, as a person reads it; absent where a person denied the call: the decision has the reason."""
    metadata: NotRequired[dict[str, Any]]
    """The tool's own data about the call."""
    time: NotRequired[CardTime]
    """When it ran."""
    attachments: NotRequired[list[CardAttachment]]
    """Files and pictures that came with the output."""


class CardUi(TypedDict):
    """What only the card of a call shows."""

    label: str
    """What stands beside the tool's name: a path, a command, a pattern."""
    by: Literal["user", "model"]
    """Who called: the person in a cell, or a model."""
    ask: NotRequired[Annotated[CardAsk, LIVE]]
    """The permission request that waits for approval now."""
    question: NotRequired[Annotated[CardQuestions, LIVE]]
    """The questions that wait for answers now; never together with `ask`."""
    untouched: NotRequired[Annotated[bool, LIVE]]
    """The call has done nothing yet: it waits for the approval without which its tool does not begin."""
    waited: int
    """Milliseconds that this call has spent waiting for a person, the present wait left out."""
    tail: NotRequired[str]
    """The end of the output so far; may hold ANSI escapes."""
    lines: NotRequired[int]
    """Lines of output so far."""
    bytes: NotRequired[int]
    """Bytes of output so far."""
    progress: NotRequired[CardProgress]
    """How far the tool is."""
    waitsFor: NotRequired[str]
    """The file that another call changes first; this one waits for it."""
    decisions: list[CardDecision]
    """What was decided about this call, oldest first."""
    outcome: NotRequired[Outcome]
    """How it ended."""
    failure: NotRequired[str]
    """What failed in a completed call whose metadata counts failures, such as `exit code 1`; empty: nothing did."""
    spill: NotRequired[CardSpill]
    """Where the whole output is, if it was cut."""
    diff: NotRequired[str]
    """The unified diff of what was changed."""
    diffs: NotRequired[list[CardDiff]]
    """What was done to each of several files; then there is no `diff`."""
    answered: NotRequired[list[CardAnswered]]
    """Questions that this call asked."""
    tasks: NotRequired[list[CardTask]]
    """A to-do list."""
    table: NotRequired[CardTable]
    """The result's rows; the output holds the same for the model."""
    tables: NotRequired[list[CardTable]]
    """The value that a tool returned or code displayed: each table or object of it."""
    printed: NotRequired[str]
    """What a person reads of the output: tables and pictures show the rest. Absent: all."""
    sent: NotRequired[str]
    """What the model was sent in place of the error, where a person reads another text."""
    code: NotRequired[str]
    """The error's code, under which the documentation explains it: `OJ-permission-denied`."""
    cells: NotRequired[CardCells]
    """The cells of a notebook that was read."""
    files: NotRequired[list[str]]
    """Names of files that belong to the result."""
    shown: NotRequired[tuple[int, int]]
    """Lines of the output that a person is shown, first index and the one after the last; absent: all."""
    base: NotRequired[str]
    """The folder that relative paths of `table`, `diffs` and `files` are in, on the kernel's machine."""
    opens: NotRequired[CardFile]
    """The file that the label names."""
    children: NotRequired[list[CardPart]]
    """Calls made inside this one (batch, task)."""


class CardPart(TypedDict):
    """One tool call: `application/vnd.opencode.toolpart.v1+json` in a saved notebook, the trait `part` of a live card.

    The ids and `state.time` of a saved card are in its output's metadata (`saved.split_part`).
    """

    v: Literal[1]
    """Version of this contract."""
    id: str
    """The part's id."""
    callID: str
    """The call's id."""
    sessionID: str
    """The session's id."""
    messageID: str
    """The message's id."""
    tool: str
    """The tool's id."""
    state: CardState
    """The call, as OpenCode has it."""
    ui: CardUi
    """What only the card shows."""


class TailUpdate(TypedDict):
    """A piece of live output, sent apart from the part so that a tool with much output stays cheap."""

    text: str
    """The end of the output so far; may hold ANSI escapes."""
    lines: NotRequired[int]
    """Lines of output so far."""
    bytes: NotRequired[int]
    """Bytes of output so far."""
    progress: NotRequired[CardProgress]
    """How far the tool is, if that has changed."""


class CardTail(TailUpdate):
    """The same as the message to a live card."""

    kind: Literal["tail"]
    """The message's kind."""
