"""websearch: search the web through Exa. See docs/opencode/tools.md 11."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import InitContext, ToolContext
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..core.tool import Definition, Manifest, Tool
from .builtin import Number, description_file
from .web.exa import call_exa

TIMEOUT = 25.0
"""Seconds for the whole search."""
NOTHING = "No search results found. Please try a different query."


class Parameters(Arguments):
    """What to search for, and how."""

    query: Annotated[str, ForPerson("What to search for")] = Field(description="Websearch query")
    num_results: Number | None = Field(None, description="Number of search results to return (default: 8)")
    livecrawl: Literal["fallback", "preferred"] | None = Field(
        None,
        description="Live crawl mode - 'fallback': use live crawling as backup if cached content unavailable, "
        "'preferred': prioritize live crawling (default: 'fallback')",
    )
    type: Literal["auto", "fast", "deep"] | None = Field(
        None,
        description="Search type - 'auto': balanced search (default), 'fast': quick results, "
        "'deep': comprehensive search",
    )
    context_max_characters: Number | None = Field(
        None, description="Maximum characters for context string optimized for LLMs (default: 10000)"
    )


async def _search(args: Parameters, ctx: ToolContext) -> ToolResult:
    request = args.model_dump(by_alias=True, exclude_none=True)
    await ctx.ask("websearch", [args.query], ["*"], request)
    ctx.proceed()

    arguments: dict[str, Any] = {
        "query": args.query,
        "type": args.type or "auto",
        "numResults": args.num_results or 8,
        "livecrawl": args.livecrawl or "fallback",
    }
    if args.context_max_characters:
        arguments["contextMaxCharacters"] = args.context_max_characters
    text = await call_exa(ctx, "web_search_exa", arguments, TIMEOUT, what="Search")
    return ToolResult(f"Web search: {args.query}", text or NOTHING)


def _definition(_: InitContext) -> Definition:
    """Made anew each time, for the year in the description."""
    text = description_file(__file__, "websearch").replace("{{year}}", str(datetime.now().astimezone().year))
    return Definition(text, Parameters, _search)


websearch = Tool(
    "websearch",
    _definition,
    manifest=Manifest(
        builtin=True,
        group="web",
        effect="fetches",
        example='%tool websearch "release notes of pandas"',
        card=CardSpec(question="Search the web?"),
    ),
    source=__name__,
)
websearch.__doc__ = """Search the web."""
