"""The states of instances as terminals show them."""

from __future__ import annotations

_COLORS = {
    "SUCCEEDED": "green",
    "RUNNING": "cyan",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "KILLED": "red",
    "SUSPENDED": "yellow",
    "AVAILABLE": "green",
    "MISSING": "red",
    "EVICTED": "yellow",
}


def colored(state: str, text: str | None = None) -> str:
    """The text, by default the state itself, in the colour of the state."""
    text = state if text is None else text
    return f"[{_COLORS[state]}]{text}[/]" if state in _COLORS else text
