"""The ``permission`` object: what a tool may do without being asked for (docs/opencode/core.md 14.4)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, GetJsonSchemaHandler, RootModel, Tag
from pydantic.json_schema import JsonSchemaValue

from .section import TAG

Action = Literal["ask", "allow", "deny"]


def _kind(value: Any) -> str:
    return TAG + ("action" if not isinstance(value, dict | BaseModel) else "object")


Rules = Annotated[
    Annotated[Action, Tag(TAG + "action")] | Annotated[dict[str, Action], Tag(TAG + "object")], Discriminator(_kind)
]
"""One action for everything, or an action for each pattern; the last matching pattern decides."""


KNOWN: dict[str, str] = {
    "read": "Reading a file; patterns are paths relative to the project.",
    "edit": "Changing files: edit, write, multiedit, apply_patch, notebook_edit.",
    "glob": "Finding files; patterns are those that are searched for.",
    "grep": "Searching in files; patterns are the regular expressions.",
    "list": "Listing a folder.",
    "bash": "Running a command; patterns are commands such as `git *`.",
    "task": "Handing work to another agent; patterns are agents' names.",
    "sandbox": "Running a command again without the sandbox that blocked it; patterns are commands. Only a rule that "
    "names this permission allows it.",
    "external_directory": "Access to files outside the project; patterns are paths.",
    "lsp": "Asking a language server.",
    "skill": "Loading a skill; patterns are skills' names.",
    "python": "Running code in the kernel.",
    "todowrite": "Writing the list of things to do.",
    "todoread": "Reading the list of things to do.",
    "question": "Asking the person a question.",
    "webfetch": "Fetching a web page; patterns are addresses.",
    "websearch": "Searching the web.",
    "codesearch": "Searching for code.",
    "doom_loop": "Going on when the same call comes again and again.",
    "plan_enter": "Going over to planning.",
    "plan_exit": "Ending the planning.",
}
"""The permissions that are known, and what each is for."""


class PermissionRules(RootModel[dict[str, Rules]]):
    """Permissions by key. Any other tool's name may stand beside those that are named; `*` stands for all."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # Named in the schema alone: a field for each would take longer to build than all other models together.
        made = handler.resolve_ref_schema(handler(schema))
        rules = made["additionalProperties"]
        made["properties"] = {key: {"description": text, **rules} for key, text in KNOWN.items()}
        return made


Permission = Annotated[
    Annotated[Action, Tag(TAG + "action")] | Annotated[PermissionRules, Tag(TAG + "object")], Discriminator(_kind)
]
"""One action for everything, or `PermissionRules`."""
