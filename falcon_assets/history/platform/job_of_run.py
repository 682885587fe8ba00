"""The job of the run that this process was started for: of its code location it needs no other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _ProcessOfRun:
    job: str | None = None


_process = _ProcessOfRun()


def needs_only(job: str | None) -> None:
    _process.job = job


def needed_job() -> str | None:
    """None: this is no process of a run."""
    return _process.job
