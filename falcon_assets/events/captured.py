"""What an instance really read and wrote, as far as Spark said it."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.events.record import Record, Words


@dataclass(frozen=True)
class DataCaptured(Record):
    """What an instance really read and wrote.

    Attributes:
        capture: Whether all of it is known: ``complete``, or ``none`` and why.
        capture_warnings: How it differs from what the process declares.
    """

    key = "capture"

    capture: Words
    capture_warnings: tuple[Words, ...] = ()
