"""The lock of the one process that starts runs of a pipeline: its sensor, or ``falcon run``."""

from __future__ import annotations


def coordinator_lock(pipeline: str) -> str:
    return f"falcon coordinator {pipeline}"
