"""Writes down, once in a load of the code location, which definitions it has taken up."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from falcon_assets.errors import DefinitionStoreError, InvalidDefinitionsError
from falcon_assets.ledger.definition_versions import Recorder, record_definitions
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.settings import Settings


class DefinitionRecording:
    """Asked by every tick; only the first ones of a load do anything. Safe to use from several threads."""

    def __init__(self, root: Path, settings: Settings) -> None:
        """For definitions below ``root`` that have just been loaded."""
        self._root, self._settings = root, settings
        self._done = False

    def record(self, ledger: Ledger) -> None:
        """Writes down what is new; the next tick tries again where the tree has problems by now."""
        if self._done:
            return
        settings = self._settings
        with suppress(InvalidDefinitionsError, DefinitionStoreError):
            record_definitions(ledger.engine, self._root, settings.now(), Recorder(settings.user))
            self._done = True
