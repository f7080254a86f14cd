"""A whole config file."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from .agent import AgentEntry
from .mcp import McpServer
from .permission import Permission
from .programs import Formatters, Servers
from .section import Count, Milliseconds, Section, Texts, Unknown, doc


def _no_number(value: Any) -> Any:
    """A number as its text: pydantic takes 0 for False among literals, and a JSON schema does not."""
    return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class Skills(Section):
    """Where skills are looked for beside the usual folders."""

    unknown: ClassVar[Unknown] = "wrong"
    paths: Texts = doc("Folders with skills.")
    urls: Texts = doc("Addresses of lists of skills.")


class ToolOutput(Section):
    """How much of a tool's output a model gets to see; the whole is kept in a file."""

    unknown: ClassVar[Unknown] = "wrong"
    max_lines: Count = doc("Lines; default: 2000.")
    max_bytes: Count = doc("Bytes; default: 51200.")


Profile = Literal["read-only", "workspace-write", "off"]


class SandboxLimits(Section):
    """What one command may use up."""

    unknown: ClassVar[Unknown] = "wrong"
    processes: Count = doc("Processes and threads beyond those that run already; default: 4096.")
    memory: Count = doc("Bytes of one process's data; default: the machine's memory.")
    file_size: Count = doc("Bytes of one file that it writes; default: 16 GiB.")
    output: Count = doc("Bytes of output, with or without a sandbox; default: 1 GiB.")


class Sandbox(Section):
    """The operating system's limits on commands. A project's own files can only make it stricter."""

    unknown: ClassVar[Unknown] = "wrong"
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
    backend: Literal["auto", "landlock", "bubblewrap"] = doc("The sandbox to use; the strongest unless set.")
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
    sandbox: Sandbox = doc("The operating system's limits on what commands can do.")


class Compaction(Section):
    """How a long session is kept short."""

    auto: bool = doc("Summarise a session that becomes too long.")
    prune: bool = doc("Drop old outputs of tools.")
    reserved: Count = doc("Tokens reserved for an answer; default: the model's longest answer, at most 32000.")


class ConfigFile(Section):
    """OpenCode's configuration, with what opencode_jupyter reads besides."""

    unknown: ClassVar[Unknown] = "wrong"

    schema_: str = doc("Address of this schema, for editors.", alias="$schema")
    permission: Permission = doc("What may be done without asking. The last matching rule decides.")
    agent: dict[str, AgentEntry] = doc("Agents by name; an entry changes a built-in one or makes a new one.")
    mode: dict[str, AgentEntry] = doc("Primary agents by name; use agent.", deprecated=True)
    default_agent: str = doc("The default agent; build unless set.")
    tools: dict[str, bool] = doc("Tools switched on or off; use permission.", deprecated=True)
    mcp: dict[str, McpServer] = doc("MCP servers by name.")
    plugin: Texts = doc("Plugins. The lists of several files are joined.")
    instructions: Texts = doc("Files with instructions for models. The lists of several files are joined.")
    skills: Skills = doc("Where else skills are.")
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
    autoupdate: Annotated[Literal[True, False, "notify"], BeforeValidator(_no_number)] = doc(
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
