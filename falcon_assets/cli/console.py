"""The console that tables are printed on."""

from __future__ import annotations

from rich.console import Console

_WIDE = 10_000


def console() -> Console:
    """Folds what is wider than a terminal; a log or another program gets every line as it is, however long."""
    made = Console(soft_wrap=True)
    if not made.is_terminal:
        made.width = _WIDE
    return made
