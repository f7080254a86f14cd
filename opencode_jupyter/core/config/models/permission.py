"""The ``permission`` object: what a tool may do without being asked for (reference: core.md 14.4)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Tag

from .section import TAG, Section, Unknown, doc

Action = Literal["ask", "allow", "deny"]


def _kind(value: Any) -> str:
    return TAG + ("action" if not isinstance(value, dict | Section) else "object")


Rules = Annotated[
    Annotated[Action, Tag(TAG + "action")] | Annotated[dict[str, Action], Tag(TAG + "object")], Discriminator(_kind)
]
"""One action for everything, or an action for each pattern; the last pattern that fits decides."""


class PermissionRules(Section):
    """Permissions by key. Any other tool's name may stand beside these; ``*`` stands for all."""

    __pydantic_extra__: dict[str, Rules]
    unknown: ClassVar[Unknown] = "typos"

    read: Rules = doc("Reading a file; patterns are paths relative to the project.")
    edit: Rules = doc("Changing files: edit, write, multiedit, apply_patch, notebook_edit.")
    glob: Rules = doc("Finding files; patterns are those that are searched for.")
    grep: Rules = doc("Searching in files; patterns are the regular expressions.")
    list: Rules = doc("Listing a folder.")
    bash: Rules = doc("Running a command; patterns are commands such as `git *`.")
    task: Rules = doc("Handing work to another agent; patterns are agents' names.")
    external_directory: Rules = doc("Touching what lies outside of the project; patterns are paths.")
    lsp: Rules = doc("Asking a language server.")
    skill: Rules = doc("Loading a skill; patterns are skills' names.")
    python: Rules = doc("Running code in the kernel.")
    todowrite: Rules = doc("Writing the list of things to do.")
    todoread: Rules = doc("Reading the list of things to do.")
    question: Rules = doc("Asking the person a question.")
    webfetch: Rules = doc("Fetching a web page; patterns are addresses.")
    websearch: Rules = doc("Searching the web.")
    codesearch: Rules = doc("Searching for code.")
    doom_loop: Rules = doc("Going on when the same call comes again and again.")
    plan_enter: Rules = doc("Going over to planning.")
    plan_exit: Rules = doc("Ending the planning.")


Permission = Annotated[
    Annotated[Action, Tag(TAG + "action")] | Annotated[PermissionRules, Tag(TAG + "object")], Discriminator(_kind)
]
"""One action for everything, or `PermissionRules`."""
