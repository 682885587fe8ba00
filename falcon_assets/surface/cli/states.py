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


def colored(state: str) -> str:
    return f"[{_COLORS[state]}]{state}[/]" if state in _COLORS else state
