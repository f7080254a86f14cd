"""The till of the shop."""

from prices import total


def receipt(names: list[str]) -> str:
    """One line for the customer."""
    return f"{', '.join(names)}: {total(names):.2f}"
