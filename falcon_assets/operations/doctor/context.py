"""What the checks look at."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import FalconError
from falcon_assets.operations.doctor.dagster_facts import DagsterFacts
from falcon_assets.operations.doctor.database_facts import DatabaseFacts
from falcon_assets.operations.doctor.once import Once
from falcon_assets.settings import Settings


class CheckContext:
    """This installation, as far as checks look at it; each part is looked at when a check asks for it.

    Attributes:
        settings: How it is set up.
        environ: The environment.
        now: The real time.
    """

    def __init__(self, settings: Settings, now: datetime) -> None:
        """Looks at nothing yet."""
        self.settings, self.environ, self.now = settings, settings.environ, now
        self.entities: Once[EntityStore] = Once(
            lambda: load_entities(settings.entity_defs, home=settings.home).in_colo(settings.colo)
        )
        """Of this colo; raises as loading them."""
        self.database: Once[DatabaseFacts | None] = Once(self._database)
        """None: the embedded one was not made yet. Raises a SettingsError where it cannot be reached."""
        self.dagster: Once[DagsterFacts | None] = Once(self._dagster)
        """None: Dagster has not made its tables yet. Raises a SettingsError where the database cannot be used."""

    def dagster_schema(self) -> tuple[str | None, str]:
        """Revision of Dagster's tables, and the one that the installed Dagster needs; raises as :attr:`database`."""
        from falcon_assets.operations.doctor.dagster_probe import schema_of  # noqa: PLC0415 - takes seconds

        database = self.database()
        return schema_of(database.url) if database else (None, "")

    def entities_if_sound(self) -> EntityStore | None:
        """The entities; None where there are none or they have problems, which another check says."""
        try:
            return self.entities()
        except FalconError:
            return None

    def _database(self) -> DatabaseFacts | None:
        from falcon_assets.operations.doctor.database_probe import database_facts  # noqa: PLC0415 - takes seconds

        return database_facts(self.settings)

    def _dagster(self) -> DagsterFacts | None:
        from falcon_assets.operations.doctor.dagster_probe import dagster_facts  # noqa: PLC0415 - takes seconds

        database = self.database()
        if database is None or not database.has_dagster:
            return None
        store = self.entities_if_sound()
        return dagster_facts(self.settings, database.url, store.workloads if store else ())
