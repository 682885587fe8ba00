"""Runs that carry instances of a process: queued, and over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


@dataclass(frozen=True)
class RunQueued:
    """A run that a coordinator made for some instances of a process is there.

    ``attempts`` says for each of the instances which attempt the coordinator meant the run to be; none: the next.
    Of several runs for one attempt the first one has the instance, and the others are not for it.
    """

    process: str
    cluster: str
    nominals: tuple[datetime, ...]
    attempts: tuple[int, ...] = ()


class RunEnding(str, Enum):
    """How a run ended, for the instances that it left unfinished."""

    FAILED = "failed"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    """Who ran it was asked to end, or ended, or its database did: nothing is wrong with its instances."""


@dataclass(frozen=True)
class RunEnded:
    """A run is over; instances that it has not finished will not be finished by it.

    ``died``: its process was killed, by whomever; what it computes may be the reason.
    """

    ending: RunEnding
    at: datetime
    reason: str = ""
    died: bool = False
