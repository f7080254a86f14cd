"""What a config file may hold, as pydantic models: the one description that validation and the JSON schema come from.

OpenCode's keys that concern tools and permissions are described in full (docs/opencode/core.md 14, 19.1); what else it
reads (themes, keys, providers) is let through, so that one file serves both programs.
"""

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    RootModel,
    Tag,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

# ---------------------------------------------------------------------- base classes

TAG = "\0"
"""Begins the names of the members of a union, which pydantic puts into the path of an error; no key has it."""

UnknownKeys = Literal["wrong", "typos"]
"""Which keys are reported that a model does not have: all of them, or those that look like one it has."""

Count = Annotated[int, Field(gt=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Texts = list[str]


class Section(BaseModel):
    """An object of a config file. Every entry optional: several files add up to one configuration.

    Keys that it does not name are kept. Its validator is built when the first file has such an object.
    """

    model_config = ConfigDict(extra="allow", defer_build=True)
    unknown_keys: ClassVar[UnknownKeys] = "typos"


def doc(description: str, **more: Any) -> Any:
    """An optional entry, and what it is for."""
    return Field(None, description=description, **more)


NOT_ONE_OF = "not_one_of"
"""Kind of the error of `OneOf`, whose context has the ``values``."""


class OneOf:
    """In the annotation of a `Literal`: an error that has the possible values not only in its text."""

    def __get_pydantic_core_schema__(self, literal: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        values = get_args(literal)

        def check(value: Any) -> Any:
            if value not in values:
                raise PydanticCustomError(NOT_ONE_OF, "another value is expected", {"values": values})
            return value

        return no_info_before_validator_function(check, handler(literal))


# ---------------------------------------------------------------------- permissions (docs/opencode/core.md 14.4)

Action = Annotated[Literal["ask", "allow", "deny"], OneOf()]


def _rules_kind(value: Any) -> str:
    return TAG + ("action" if not isinstance(value, dict | BaseModel) else "object")


Rules = Annotated[
    Annotated[Action, Tag(TAG + "action")] | Annotated[dict[str, Action], Tag(TAG + "object")],
    Discriminator(_rules_kind),
]
"""One action for everything, or an action for each pattern; the last matching pattern decides."""


PERMISSIONS: dict[str, str] = {
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
        made["properties"] = {key: {"description": text, **rules} for key, text in PERMISSIONS.items()}
        return made


Permission = Annotated[
    Annotated[Action, Tag(TAG + "action")] | Annotated[PermissionRules, Tag(TAG + "object")], Discriminator(_rules_kind)
]
"""One action for everything, or `PermissionRules`."""


# ---------------------------------------------------------------------- agents (docs/opencode/core.md 13.1, 14.6)


class AgentEntry(Section):
    """One entry of ``agent`` or ``mode``. A key that is not among these becomes one of its ``options``."""

    name: str = doc("The name that is shown.")
    description: str = doc("When to use it; a model that may hand it a task reads this.")
    mode: Annotated[Literal["primary", "subagent", "all"], OneOf()] = doc(
        "Who may use it: a person, other agents, or both."
    )
    model: str = doc("Its model as provider/model; default: the session's.")
    variant: str = doc("The model's variant, such as how hard it thinks.")
    prompt: str = doc("Its system prompt.")
    temperature: Number = doc("Sampling temperature.")
    top_p: Number = doc("Nucleus sampling.")
    steps: Count = doc("The most model turns for one prompt.")
    maxSteps: Count = doc("Use steps.", deprecated=True)  # noqa: N815 - OpenCode's spelling
    color: str = doc("For a front end.")
    disable: bool = doc("Take the agent away.")
    hidden: bool = doc("Hide it in lists.")
    options: dict[str, Any] = doc("Passed to the model's provider.")
    permission: Permission = doc("Its own rules, judged after everyone's.")
    tools: dict[str, bool] = doc("Tools switched on or off; use permission.", deprecated=True)


# ---------------------------------------------------------------------- MCP servers (docs/opencode/core.md 19.1)


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("scalar_type", "a text is expected")
    return value


Scalar = Annotated[Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A text; a number or truth is written out."""


class McpOAuth(Section):
    """How to sign in; what is left out is found out from the server."""

    clientId: str = doc("The client's id, if it was registered beforehand.")  # noqa: N815 - OpenCode's spelling
    clientSecret: str = doc("The client's secret.")  # noqa: N815
    scope: Any = doc("The scopes to request.")
    redirectUri: str = doc("Where the browser comes back to.")  # noqa: N815


def _command_kind(value: Any) -> str:
    return TAG + ("text" if isinstance(value, str) else "list")


def _oauth_kind(value: Any) -> str:
    return TAG + ("object" if isinstance(value, dict | Section) else "switch")


class McpServer(Section):
    """A server: a program on this computer (local) or an address (remote).

    It may be spread over several files; one of them may say no more than `{"enabled": false}`.
    """

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    type: Annotated[Literal["local", "remote", "stdio", "http", "streamable-http", "sse"], OneOf()] = doc(
        "local (or stdio) for a program, remote (or http, sse) for an address."
    )
    command: Annotated[
        Annotated[str, Tag(TAG + "text")] | Annotated[Texts, Tag(TAG + "list")], Discriminator(_command_kind)
    ] = doc("Program and arguments of a local server.")
    args: Texts = doc("More arguments; OpenCode's files list them in command.")
    environment: dict[str, Scalar] = doc("Set in a local server's environment.")
    env: dict[str, Scalar] = doc("The same as environment, OpenCode's name for it.")
    cwd: str = doc("The folder a local server runs in; default: the project's.")
    url: str = doc("Address of a remote server.")
    headers: dict[str, Scalar] = doc("Sent with every request to a remote server.")
    oauth: Annotated[
        Annotated[McpOAuth, Tag(TAG + "object")] | Annotated[bool, Tag(TAG + "switch")], Discriminator(_oauth_kind)
    ] = doc("How to sign in to a remote server; false for never.")
    enabled: bool = doc("Connect to it when its tools are first needed.")
    disabled: bool = doc("Never connect to it; OpenCode's name for the opposite is enabled.")
    timeout: Milliseconds = doc("Milliseconds for connecting and for each answer.")


# ---------------------------------------------------------------------- formatters and language servers


class FormatterEntry(Section):
    """A program that puts a file's layout right after it was changed."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    command: Texts = doc('Program and arguments; "$FILE" stands for the file.')
    extensions: Texts = doc('Endings of the files it formats, such as ".py".')
    environment: dict[str, str] = doc("Set in its environment.")
    disabled: bool = doc("Never run it.")


class LspEntry(Section):
    """A language server."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    command: Texts = doc("Program and arguments.")
    extensions: Texts = doc('Endings of the files it serves, such as ".py".')
    env: dict[str, str] = doc("Set in its environment.")
    initialization: dict[str, Any] = doc("Its initializationOptions.")
    disabled: bool = doc("Never start it.")


def _switch_kind(value: Any) -> str:
    return TAG + ("switch" if isinstance(value, bool) else "object")


_Switch = Annotated[bool, Tag(TAG + "switch")]
Formatter = Annotated[_Switch | Annotated[FormatterEntry, Tag(TAG + "object")], Discriminator(_switch_kind)]
Lsp = Annotated[_Switch | Annotated[LspEntry, Tag(TAG + "object")], Discriminator(_switch_kind)]
Formatters = Annotated[_Switch | Annotated[dict[str, Formatter], Tag(TAG + "object")], Discriminator(_switch_kind)]
"""``false`` for none at all, or entries by name; an entry may be ``false`` too."""
Servers = Annotated[_Switch | Annotated[dict[str, Lsp], Tag(TAG + "object")], Discriminator(_switch_kind)]
"""``false`` for none at all, or entries by name; an entry may be ``false`` too."""


# ---------------------------------------------------------------------- the whole file


def _no_number(value: Any) -> Any:
    """A number as its text: pydantic takes 0 for False among literals, and a JSON schema does not."""
    return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class SkillSettings(Section):
    """Where skills are looked for beside the usual folders."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    paths: Texts = doc("Folders with skills.")
    urls: Texts = doc("Addresses of lists of skills.")


class ToolOutput(Section):
    """How much of a tool's output a model gets to see; the whole is kept in a file."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    max_lines: Count = doc("Lines; default: 2000.")
    max_bytes: Count = doc("Bytes; default: 51200.")


Profile = Annotated[Literal["read-only", "workspace-write", "off"], OneOf()]


class SandboxLimits(Section):
    """What one command may use up."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    processes: Count = doc("Processes and threads beyond those that run already; default: 4096.")
    memory: Count = doc("Bytes of one process's data; default: the machine's memory.")
    file_size: Count = doc("Bytes of one file that it writes; default: 16 GiB.")
    output: Count = doc("Bytes of output, with or without a sandbox; default: 1 GiB.")


class SandboxConfig(Section):
    """The operating system's limits on commands. A project's own files can only make it stricter."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"
    profile: Profile = doc("For what a model runs; workspace-write unless set.")
    user: Profile = doc("For what you type and your code runs; off unless set.")
    agents: dict[str, Profile] = doc("For what a model runs as these agents, by name.")
    rules: dict[str, Profile] = doc("For a model's bash commands, by pattern such as `docker *`; the last that fits.")
    programs: dict[str, Profile] = doc(
        "For formatter, lsp, tools (JavaScript tool files), mcp, or one of them (mcp.NAME); workspace-write unless set."
    )
    network: bool = doc("Allow commands TCP and other programs' sockets; false unless set.")
    writable: Texts = doc("More folders that may be changed.")
    hidden: Texts = doc("More files and folders that must not be read.")
    backend: Annotated[Literal["auto", "landlock", "bubblewrap"], OneOf()] = doc(
        "The sandbox to use; the strongest unless set."
    )
    limits: SandboxLimits = doc("Limits of one command.")


class Experimental(Section):
    """What may change. Keys of OpenCode's that this package does not read may stand here too."""

    batch_tool: bool = doc("Offer the tool batch: several calls in one.")
    primary_tools: Texts = doc("Tools for primary agents alone: no subagent gets them.")
    continue_loop_on_deny: bool = doc("Let a model continue after a person has denied a call.")
    mcp_timeout: Milliseconds = doc("Milliseconds an MCP server has to answer, unless its own entry sets a limit.")
    mcp_pages: bool = doc(
        "Show the address of a page that an MCP server requests to open; it is never opened automatically."
    )
    mcp_sampling: bool | str = doc(
        "Let MCP servers request a model's answer during a call: true for small_model (or model), or a model's name. "
        "The permission mcp_sampling, with a server's name as pattern, decides which servers."
    )
    mcp_max_message_bytes: Count = doc("Largest message of an MCP server in bytes; default: 16 MB.")
    lsp_timeout: Milliseconds = doc("Milliseconds a language server has for an answer.")
    shell_env_keep: Any = doc(
        "Variables that a model's commands, formatters, servers and tool files get besides the usual ones (PATH, LANG, "
        "proxies, ...): a list of names with wildcards, or true."
    )
    allow_bypass: bool = doc("Allow %permissions mode bypass, in which no call needs approval.")
    mask_secrets: bool = doc("Mask the values of known secrets; true unless your own configuration says false.")
    sandbox: SandboxConfig = doc("The operating system's limits on what commands can do.")


class Compaction(Section):
    """How a long session is kept short."""

    auto: bool = doc("Summarise a session that becomes too long.")
    prune: bool = doc("Drop old outputs of tools.")
    reserved: Count = doc("Tokens reserved for an answer; default: the model's longest answer, at most 32000.")


class ConfigFile(Section):
    """OpenCode's configuration, with what opencode_jupyter reads besides."""

    unknown_keys: ClassVar[UnknownKeys] = "wrong"

    schema_: str = doc("Address of this schema, for editors.", alias="$schema")
    permission: Permission = doc("What may be done without asking. The last matching rule decides.")
    agent: dict[str, AgentEntry] = doc("Agents by name; an entry changes a built-in one or makes a new one.")
    mode: dict[str, AgentEntry] = doc("Primary agents by name; use agent.", deprecated=True)
    default_agent: str = doc("The default agent; build unless set.")
    tools: dict[str, bool] = doc("Tools switched on or off; use permission.", deprecated=True)
    mcp: dict[str, McpServer] = doc("MCP servers by name.")
    plugin: Texts = doc("Plugins. The lists of several files are joined.")
    instructions: Texts = doc("Files with instructions for models. The lists of several files are joined.")
    skills: SkillSettings = doc("Where else skills are.")
    formatter: Formatters = doc("Programs that format files after a change; false for none.")
    lsp: Servers = doc("Language servers; false for none.")
    tool_output: ToolOutput = doc("How much of an output a model sees.")
    experimental: Experimental = doc("What may change.")

    model: str = doc("The model as provider/model.")
    small_model: str = doc("A cheap model for titles and the like.")
    provider: dict[str, dict[str, Any]] = doc("Model providers by name: their options and models.")
    enabled_providers: Texts = doc("Use these providers alone.")
    disabled_providers: Texts = doc("Never use these providers.")
    command: dict[str, dict[str, Any]] = doc("Commands of OpenCode's own screen.")
    compaction: Compaction = doc("When a long session is summarised.")
    username: str = doc("The name that is shown for the person.")
    snapshot: bool = doc("Keep what is needed to take changes back.")
    share: str = doc("Whether sessions are shared: manual, auto or disabled.")
    autoshare: bool = doc("Use share.", deprecated=True)
    autoupdate: Annotated[Literal[True, False, "notify"], OneOf(), BeforeValidator(_no_number)] = doc(
        "Whether OpenCode updates itself."
    )
    logLevel: str = doc("How much OpenCode logs.")  # noqa: N815 - OpenCode's spelling
    theme: str = doc("Colours of OpenCode's own screen.")
    layout: str = doc("Not used any more.", deprecated=True)
    keybinds: dict[str, Any] = doc("Keys of OpenCode's own screen.")
    tui: dict[str, Any] = doc("OpenCode's own screen.")
    server: dict[str, Any] = doc("OpenCode's server.")
    watcher: dict[str, Any] = doc("What OpenCode watches for changes.")
    enterprise: dict[str, Any] = doc("OpenCode for companies.")
