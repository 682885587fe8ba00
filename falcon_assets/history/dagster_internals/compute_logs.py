"""Captured output of runs: storing it in our own folder, and reading it. Dagster's classes for this are not public."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

import dagster as dg
from dagster._core.storage.compute_log_manager import ComputeIOType, ComputeLogManager  # reads what was kept
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager  # keeps it in local files
from dagster._serdes import ConfigurableClassData  # how dagster.yaml declares a class


class LocalLogs(LocalComputeLogManager):
    def prepare(self, file: Path) -> None:
        raise NotImplementedError

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Built by Dagster from ``dagster.yaml``: Dagster's own method would not build a subclass."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[Any, None, None]:
        for extension in ("out", "err"):
            self.prepare(Path(self.get_captured_local_path(log_key, extension)))
        with super().capture_logs(log_key) as context:
            yield context

    @contextmanager
    def open_log_stream(self, log_key: Sequence[str], io_type: Any) -> Iterator[IO[Any] | None]:
        extension = "out" if io_type.value == "stdout" else "err"
        self.prepare(Path(self.get_captured_local_path(log_key, extension)))
        with super().open_log_stream(log_key, io_type) as stream:
            yield stream


@dataclass(frozen=True)
class CapturedLog:
    """Captured output of a step; ``read`` returns up to so many bytes from an offset, none at the end."""

    stream: str
    place: str
    read: Callable[[int, int], bytes]


def captured_logs(instance: dg.DagsterInstance, run_id: str, step: str) -> Iterator[CapturedLog]:
    """Returns the output of the step, together with that of the other steps of its process."""
    manager = instance.compute_log_manager
    captures = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.LOGS_CAPTURED).records
    for record in captures:
        event = record.event_log_entry.dagster_event
        if event is None or step not in event.logs_captured_data.step_keys:
            continue
        key = manager.build_log_key_for_run(run_id, event.logs_captured_data.file_key)
        said = manager.get_log_metadata(key)
        for stream, place in (
            (ComputeIOType.STDOUT, said.stdout_location),
            (ComputeIOType.STDERR, said.stderr_location),
        ):
            yield CapturedLog(stream.value, place or "/".join(key), partial(_read, manager, key, stream))


def _read(manager: ComputeLogManager[Any], key: Sequence[str], stream: ComputeIOType, offset: int, size: int) -> bytes:
    found, _ = manager.get_log_data_for_type(key, stream, offset, size)
    return found or b""
