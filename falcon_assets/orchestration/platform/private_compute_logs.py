"""What runs print, for nobody's eyes but its owner's: programs may say anything."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from falcon_assets.orchestration.dagster_internals.storage import ConfigurableClassData, LocalComputeLogManager


class PrivateComputeLogManager(LocalComputeLogManager):
    """Dagster's own, in files that only their owner can read."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> PrivateComputeLogManager:
        """Built by Dagster from ``dagster.yaml``."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[Any, None, None]:
        """Captures what this process and its children print."""
        for name in ("out", "err"):
            _make(Path(self.get_captured_local_path(log_key, name)))
        with super().capture_logs(log_key) as context:
            yield context

    @contextmanager
    def open_log_stream(self, log_key: Sequence[str], io_type: Any) -> Iterator[IO[Any] | None]:
        """A file for what somebody else writes."""
        _make(Path(self.get_captured_local_path(log_key, "out" if io_type.value == "stdout" else "err")))
        with super().open_log_stream(log_key, io_type) as stream:
            yield stream


def _make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
