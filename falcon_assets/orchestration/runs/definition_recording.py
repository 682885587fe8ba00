"""Writes down, once in a load of the code location, which definitions it has taken up."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from falcon_assets.errors import DefinitionStoreError, InvalidDefinitionsError
from falcon_assets.ledger.entities.definition_versions import Recorder, record_definitions
from falcon_assets.ledger.entities.versions_of_instances import EntityVersions, versions_of
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.settings import Settings


class DefinitionRecording:
    """Asked by every tick and run; only the first ones of a load do anything. Safe to use from several threads.

    Attributes:
        done_at: When everything was written down, on the falcon clock; None: it is not.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        """For definitions below ``root`` that have just been loaded."""
        self._root, self._settings = root, settings
        self.done_at: datetime | None = None

    def record(self, ledger: Ledger) -> None:
        """Writes down what is new; the next tick tries again where the tree has problems by now."""
        if self.done_at is not None:
            return
        settings = self._settings
        now = settings.now()
        with suppress(InvalidDefinitionsError, DefinitionStoreError):
            record_definitions(ledger.engine, self._root, now, Recorder(settings.user))
            self.done_at = now


def recorded_versions(
    ledger: Ledger, recording: DefinitionRecording, entity: Feed | Process
) -> tuple[EntityVersions, int | None]:
    """The versions of an entity, and which of them was loaded; None: what was loaded is not recorded."""
    recording.record(ledger)
    with ledger.engine.connect() as connection:
        found = versions_of(connection, [(entity.kind, entity.name)]).get((entity.kind, entity.name), EntityVersions())
    return found, found.at(recording.done_at) if recording.done_at else None
