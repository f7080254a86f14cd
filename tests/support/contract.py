"""Holds the JSON of cards against their contract."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from opencode_jupyter.jupyter.cards.contract_schema import CardContract

_CONTRACT = TypeAdapter(CardContract)


def check(**made: Any) -> None:
    """Raise if a `part`, `run`, `tail`, `update` or `whole` is not as the contract describes it."""
    _CONTRACT.validate_python(made, strict=False)
