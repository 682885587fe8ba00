"""Common parts of the commands of ``falcon entity``."""

from __future__ import annotations

from datetime import UTC, datetime


def commanded_or_declared(commanded: bool) -> str:
    """Whether a status comes from a command or from the definition, in a word."""
    return "commanded" if commanded else "declared"


def moment(at: datetime | None) -> str:
    """To the second, "" for none; not by strftime, whose %Y does not pad years below 1000."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z" if at else ""
