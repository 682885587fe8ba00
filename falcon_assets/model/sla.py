"""Levels of SLAs."""

from __future__ import annotations

from enum import Enum


class SlaLevel(str, Enum):
    """The two levels of an SLA, of feeds and of processes, as definitions call them."""

    LOW = "low"
    HIGH = "high"
    START = "should_start_in"
    END = "should_end_in"

    @property
    def is_missed(self) -> bool:
        """Whether the SLA is missed when this is breached; else it is in danger (source: Falcon's slaLow)."""
        return self in (SlaLevel.HIGH, SlaLevel.END)

    @property
    def severity(self) -> str:
        """How bad a breach of it is, in Dagster's word."""
        return "ERROR" if self.is_missed else "WARN"
