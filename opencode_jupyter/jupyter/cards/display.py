"""IPython's `display`, which has no types of its own."""

from __future__ import annotations

from typing import Any

Bundle = tuple[dict[str, Any], dict[str, Any]]


def show_bundle(bundle: Bundle, *, display_id: str | None = None, update: bool = False) -> None:
    """Display a MIME bundle as it is, or put it in the place of the display with this id."""
    from IPython.display import display

    data, metadata = bundle
    options: dict[str, Any] = {"display_id": display_id, "update": update} if display_id else {}
    display(data, metadata=metadata, raw=True, **options)  # type: ignore[no-untyped-call]


def show_object(value: Any, display_id: str) -> None:
    """Display an object that can be replaced later."""
    from IPython.display import display

    display(value, display_id=display_id)  # type: ignore[no-untyped-call]
