"""Trees of definitions that commands change."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from falcon_assets.catalog.yaml_files.journal import FOLDER
from falcon_assets.features.entities.results import Request
from falcon_assets.operations.installation import Installation
from falcon_assets.settings import Settings, load_settings
from tests.catalog.definition_files import CLUSTERS, FEEDS, PROCESSES

PARTS = [part for text in (CLUSTERS, FEEDS, PROCESSES) for part in text.split("---\n")]
PRIMARY, BACKUP, RAW, DELAYS, HOURLY = PARTS
AWAY = "postgresql://falcon@127.0.0.1:1/none"
"""A database that cannot be reached: what changes is written down by the next load."""


def settings_of(folder: Path, **environ: str) -> Settings:
    """Settings with definitions in ``folder``/defs; no webserver is asked, and no database unless one is given."""
    home = {"FALCON_HOME": str(folder / "home"), "FALCON_ENTITY_DEFS": str(folder / "defs")}
    told = {"FALCON_DATABASE_URL": AWAY, "FALCON_WEBSERVER_URL": "", "FALCON_CLOCK": "2013-01-03T06:00Z"}
    return load_settings({**home, **told, **environ})


def installation_of(folder: Path, **environ: str) -> Installation:
    """An installation of such settings."""
    return Installation(settings_of(folder, **environ), ExitStack())


def request(*given: str | Path, **options: object) -> Request:
    """What is given by names and paths."""
    return Request(tuple(map(str, given)), **options)  # type: ignore[arg-type]


def content(root: Path) -> dict[str, bytes]:
    """All files of the tree but for those of the journal."""
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and file.relative_to(root).parts[0] != FOLDER
    }


def written(folder: Path, **texts: str) -> Path:
    """A folder with these files, each with the suffix of YAML."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder
