"""The anywidget class of a live display; calls and runs have each a front-end module, made of the same card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .card_script import packed

STATIC = Path(__file__).parents[2] / "static"
ESM = STATIC / "card.js"
"""Draws a call."""
MODULES = {"part": ESM, "run": STATIC / "run.js"}
"""By the trait that holds what is shown: each live card carries its module to the page, so a call's leaves runs out."""
Shown = dict[str, Any]


def live_widget(trait: str, text: Callable[[Shown], str], lost: Callable[[Shown], dict[str, Any]]) -> type[Any] | None:
    """A widget class; it imports anywidget, which takes a moment.

    Args:
        trait: the name of the trait that holds what is shown: ``part`` (a call) or ``run``.
        text: what a front end without widgets shows of it.
        lost: what is left of it, by MIME type, if the kernel dies in the middle.

    Returns:
        The class; None when anywidget or its built module is missing.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None
    if not MODULES[trait].is_file():
        return None

    class Live(anywidget.AnyWidget):
        """The widget of work in progress."""

        _esm = packed(MODULES[trait].read_text(encoding="utf-8"))
        kernel_id = traitlets.Unicode("").tag(sync=True)
        comm_id = traitlets.Unicode("").tag(sync=True)  # for answers that come by another way than the comm

        def _repr_mimebundle_(self, **options: Any) -> Any:
            bundle = super()._repr_mimebundle_(**options)
            data, metadata = bundle if bundle is not None else ({}, {})
            shown = dict(getattr(self, trait))
            data["text/plain"] = text(shown)
            data.update(lost(shown))
            return data, metadata

    return type(f"Live_{trait}", (Live,), {trait: traitlets.Dict().tag(sync=True)})
