"""Settings, entities, Dagster's instance and the ledger, for operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from sqlalchemy import Connection, Engine

    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.operations.operation import Operation


@dataclass(frozen=True)
class Installation:
    """Opens everything on first use, and once; even Dagster is imported only then."""

    _given: Settings | None
    _opened: ExitStack

    @cached_property
    def settings(self) -> Settings:
        """Raises SettingsError where a variable of the environment is malformed."""
        return load_settings() if self._given is None else self._given

    @cached_property
    def all_entities(self) -> EntityStore:
        """Raises InvalidDefinitionsError, and MissingDefinitionsError where there are none."""
        return load_entities(self.settings.entity_defs, home=self.settings.home)

    @property
    def performer(self) -> Callable[[Installation, Operation], Any] | None:
        """Performs what is requested over the network, where others have to do that; None: this installation does."""
        return None

    @cached_property
    def unanswered(self) -> dict[str, str]:
        """Colos that did not answer what was asked here, and why."""
        return {}

    def forget_entities(self) -> None:
        for name in ("all_entities", "entities"):
            self.__dict__.pop(name, None)

    @cached_property
    def entities(self) -> EntityStore:
        """Of this colo; raises as :attr:`all_entities`, and UnknownEntityError where no cluster is in the colo."""
        return self.all_entities.in_colo(self.settings.colo)

    @cached_property
    def instance(self) -> DagsterInstance:
        """Raises SettingsError where ``dagster.yaml`` is not YAML, or the database cannot be reached."""
        from falcon_assets.history.platform.open_instance import open_instance  # noqa: PLC0415 - takes seconds

        return self._opened.enter_context(open_instance(self.settings))

    @cached_property
    def ledger(self) -> Ledger:
        """As far as it was folded; raises as :attr:`instance`."""
        from falcon_assets.history.platform.open_ledger import open_ledger  # noqa: PLC0415 - takes seconds

        return open_ledger(self.settings, self.instance)

    @cached_property
    def tables(self) -> Engine:
        """The ledger's tables as far as folded, with Dagster opened only on first creation; raises SettingsError."""
        from falcon_assets.history.platform.open_ledger import open_tables  # noqa: PLC0415 - needs the database

        return open_tables(self.settings) or self.ledger.engine

    def tables_caught_up(self) -> Engine:
        """:attr:`tables` with all of Dagster's history; opens Dagster only where some of it is missing."""
        from falcon_assets.history.platform.open_ledger import is_folded  # noqa: PLC0415 - needs the database

        if not is_folded(self.tables):
            self.ledger.catch_up_to_read()
        return self.tables

    @cached_property
    def database(self) -> Engine:
        """The ledger's tables without Dagster; raises SettingsError where the database cannot be reached."""
        from falcon_assets.history.platform.open_ledger import ledger_engine  # noqa: PLC0415 - takes seconds

        engine = ledger_engine(self.settings)
        self._opened.callback(engine.dispose)
        return engine

    def require_writable(self) -> None:
        """Raises ReadOnlyError where the database can only be read, and SettingsError where it cannot be reached."""
        from falcon_assets.history.platform.postgres import require_writable  # noqa: PLC0415 - needs the database

        require_writable(self.database)

    @contextmanager
    def recorded(self) -> Iterator[Connection | None]:
        """A connection to :attr:`database`, None where none exists yet; raises SettingsError."""
        if not (self.settings.database_url or (self.settings.home / "postgres").exists()):
            yield None
            return
        with self.database.connect() as connection:
            yield connection

    def set_clock(self, *, anew: bool) -> None:
        """Sets the database to the settings' clock, ``anew`` also after another simulated one; raises SettingsError."""
        from falcon_assets.history.platform.open_ledger import set_clock  # noqa: PLC0415 - takes seconds

        set_clock(self.settings, anew=anew)


@contextmanager
def open_installation(
    settings: Settings | None = None, instance: DagsterInstance | None = None
) -> Iterator[Installation]:
    """Opens an installation (``settings`` None: as in the environment), and closes what it opened, not ``instance``."""
    with ExitStack() as opened:
        installation = Installation(settings, opened)
        if instance is not None:
            installation.__dict__["instance"] = instance
        yield installation
