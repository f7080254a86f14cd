"""The widget of a live card: its anywidget class, and its script as it goes to the page.

Calls and runs have a script each, made of the same card. Each live card sends its script to the page anew, so it is
deflated.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parents[2] / "static"
ESM = STATIC / "card.js"
"""Draws a call."""
MODULES = {"part": ESM, "run": STATIC / "run.js"}
"""By the trait that holds what is shown: each live card carries its module to the page, so a call's leaves runs out."""
CardJson = dict[str, Any]
# Unpacks the card's script (opencode_jupyter/static/card.js), once for all cards of a page.
_SHIM = """\
const KEY = Symbol.for('opencode_jupyter/card/@HASH@');
async function unpack() {
  const bytes = Uint8Array.from(atob('@DATA@'), (c) => c.charCodeAt(0));
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const url = URL.createObjectURL(new Blob([await new Response(text).arrayBuffer()], { type: 'text/javascript' }));
  return (await import(url).finally(() => URL.revokeObjectURL(url))).default;
}
export default () => (globalThis[KEY] ??= unpack().catch((error) => {
  delete globalThis[KEY];
  throw error;
}));
"""


@cache
def live_widget(
    trait: str, text: Callable[[CardJson], str], lost: Callable[[CardJson], dict[str, Any]]
) -> type[Any] | None:
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

        _esm = pack_script(MODULES[trait].read_text(encoding="utf-8"))
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


def pack_script(script: str) -> str:
    """A module that gives what `script` (a module with a default export) gives, at less than half its size.

    Browsers unpack it themselves (``DecompressionStream``: Chromium 80, Firefox 113, Safari 16.4).
    """
    raw = script.encode()
    # the memory level that gives the smallest data here: Huffman codes fitted to shorter blocks
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, memLevel=7)
    data = base64.b64encode(squeezed.compress(raw) + squeezed.flush()).decode()
    return _SHIM.replace("@HASH@", hashlib.sha256(raw).hexdigest()[:16]).replace("@DATA@", data)
