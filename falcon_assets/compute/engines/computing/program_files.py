"""Paths of logs of programs: below the working location, by process, nominal time and run."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit


def log_folder(working: str, process: str, nominal: datetime) -> Path | None:
    """Returns the folder for the logs of an instance, which may not exist; None: ``working`` is not on this machine."""
    url = urlsplit(working)
    if url.scheme not in ("", "file"):
        return None
    root = Path(unquote(url.path) if url.scheme else working).absolute()
    return root / "spark-submit" / process / f"{nominal:%Y%m%dT%H%M}"


def log_name(run_id: str, unique: str) -> str:
    return f"spark-submit-{run_id}-{unique}.log"


def logs_of_run(working: str, process: str, nominal: datetime, run_id: str) -> list[Path]:
    folder = log_folder(working, process, nominal)
    found = folder.glob(log_name(run_id, "*")) if folder is not None else ()
    return sorted(found, key=lambda file: file.stat().st_mtime)
