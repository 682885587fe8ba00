"""Who starts runs of a pipeline: its sensor, or ``falcon run``."""

from __future__ import annotations


def coordinator_lock(pipeline: str) -> str:
    """The name of the lock of whoever starts runs of the pipeline."""
    return f"falcon coordinator {pipeline}"
