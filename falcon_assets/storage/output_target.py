"""Where one output of a process instance goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputTarget:
    """The final place of one output, and what makes it complete."""

    path: str
    """The final path, below the root of the store."""
    flag: str | None
    """Name of the availability flag to set; None: the presence of the path says "complete"."""
    permission: str | None = None
    """Octal mode of the feed's ``acl``; None or ``*`` leaves it alone."""
    format: str = ""
    """What the files of an output in a table are written as."""
    makes_table: bool = False
    """Whether a table that is not there is made."""
