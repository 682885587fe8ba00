"""Where what runs print is kept, for a place of our own: Dagster's class for local files is not public."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager  # keeps it in local files
from dagster._serdes import ConfigurableClassData  # how dagster.yaml declares a class
from typing_extensions import Self


class LocalLogs(LocalComputeLogManager):
    """Dagster's own, whose files a subclass may prepare: Dagster appends to what is there."""

    def prepare(self, file: Path) -> None:
        """Called before anything is written to a file, which may be there already."""
        raise NotImplementedError

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Built by Dagster from ``dagster.yaml``: its own would not build a subclass."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[Any, None, None]:
        """Captures what this process and its children print."""
        for extension in ("out", "err"):
            self.prepare(Path(self.get_captured_local_path(log_key, extension)))
        with super().capture_logs(log_key) as context:
            yield context

    @contextmanager
    def open_log_stream(self, log_key: Sequence[str], io_type: Any) -> Iterator[IO[Any] | None]:
        """A file for what somebody else writes."""
        extension = "out" if io_type.value == "stdout" else "err"
        self.prepare(Path(self.get_captured_local_path(log_key, extension)))
        with super().open_log_stream(log_key, io_type) as stream:
            yield stream
