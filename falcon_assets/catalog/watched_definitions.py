"""Whether the definitions can be loaded: checked before a run starts, which reads them anew."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TypeAlias

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.yaml_files.definition_files import definition_paths
from falcon_assets.errors import FalconError

DefinitionsState: TypeAlias = "frozenset[tuple[str, int, int, int]]"


class WatchedDefinitions:
    """Checks the files of the definitions, and reads them only when one of them has changed.

    Safe to use from several threads.
    """

    def __init__(self, root: Path, *, are_loaded: bool = True) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._state: DefinitionsState | None = definitions_state(self._root) if are_loaded else None
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Returns why the definitions cannot be loaded now, as ``falcon validate`` shows it; None: they can.

        A missing workflow counts, but is noticed only after a definition has changed.
        """
        with self._lock:
            state = definitions_state(self._root)
            if state != self._state or self._problem is not None:
                self._problem = self._found()
                self._state = state
            return self._problem

    def _found(self) -> str | None:
        try:
            load_entities(self._root)
        except FalconError as error:
            return str(error)
        return None


def definitions_state(root: Path) -> DefinitionsState:
    """Of the files: another one after any of them was changed."""
    found = set()
    for path in definition_paths(root):
        try:
            status = path.stat()
        except OSError:
            found.add((str(path), 0, 0, 0))
        else:
            found.add((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return frozenset(found)
