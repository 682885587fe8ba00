"""What it took to make an instance, for people: how long, by whom, how much was copied."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.events.record import Record, Text


@dataclass(frozen=True)
class WorkDone(Record):
    """What it took to make an instance.

    Attributes:
        duration_seconds: From planning the instance to the last published output.
        spark_application_id: Of the Spark application that computed it.
    """

    duration_seconds: float
    spark_application_id: str | None = None


@dataclass(frozen=True)
class FilesCopied(Record):
    """What a replication copied of an instance.

    Attributes:
        source: The cluster that was read.
        files_copied: Files that were copied.
        files_skipped: Files that were there already.
        files_failed: Files that could not be copied.
        bytes_copied: Size of what was copied.
        verification: How that was verified.
    """

    source: Text
    files_copied: int
    files_skipped: int
    files_failed: int
    bytes_copied: int
    verification: str
