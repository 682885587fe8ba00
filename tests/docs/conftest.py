"""What a reader of the pages has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from falcon_assets.settings import Settings
from tests.listener import share_listener
from tests.processes import BIN, CHECKOUT, environ_with


@pytest.fixture(scope="module")
def environ(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The programs of ``.venv`` in the path, and no settings but the database."""
    found = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "FALCON_DATABASE_URL": settings.database_url or "",
        # A page runs pytest, which closes its folder to others: in ours is the database of these tests.
        "PYTEST_DEBUG_TEMPROOT": str(tmp_path_factory.mktemp("pytest")),
    }
    return environ_with(**found, FALCON_JOBS="entities,instances")  # others may be able to log in where tests run


@pytest.fixture(scope="module")
def checkout(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the checkout after ``make install``, without definitions; ``.falcon`` is the home of the module."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("dagster.yaml", "workspace.yaml", "pyproject.toml"):
        shutil.copy(CHECKOUT / name, folder)
    (folder / ".env").write_text(f"DAGSTER_HOME={folder}\n")
    (folder / ".falcon").symlink_to(settings.home)
    share_listener(settings.home / "hello")  # what the tutorial sets
    return folder
