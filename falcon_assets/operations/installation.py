"""What operations work on: settings, entities, Dagster's instance and the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from sqlalchemy import Connection, Engine

    from falcon_assets.history.platform.open_ledger import Ledger


@dataclass(frozen=True)
class Installation:
    """Everything here is opened when it is asked for, and once; Dagster is not even imported before.

    Attributes:
        settings: How this installation is set up.
    """

    settings: Settings
    _opened: ExitStack

    @cached_property
    def all_entities(self) -> EntityStore:
        """The entities of all colos.

        Raises:
            InvalidDefinitionsError: the definitions have problems.
            MissingDefinitionsError: there are none.
        """
        return load_entities(self.settings.entity_defs, home=self.settings.home)

    def forget_entities(self) -> None:
        """Reads the definitions anew when they are asked for the next time: they have changed."""
        for name in ("all_entities", "entities"):
            self.__dict__.pop(name, None)

    @cached_property
    def entities(self) -> EntityStore:
        """The entities of this colo.

        Raises:
            InvalidDefinitionsError: the definitions have problems.
            MissingDefinitionsError: there are none.
            UnknownEntityError: no cluster is of this colo.
        """
        return self.all_entities.in_colo(self.settings.colo)

    @cached_property
    def instance(self) -> DagsterInstance:
        """Dagster's instance.

        Raises:
            SettingsError: ``dagster.yaml`` is not YAML, or the database cannot be reached.
        """
        from falcon_assets.history.platform.open_instance import open_instance  # noqa: PLC0415 - takes seconds

        return self._opened.enter_context(open_instance(self.settings))

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, as far as it was folded; raises as :attr:`instance`."""
        from falcon_assets.history.platform.open_ledger import open_ledger  # noqa: PLC0415 - takes seconds

        return open_ledger(self.settings, self.instance)

    @cached_property
    def tables(self) -> Engine:
        """The tables of :attr:`ledger`, as far as they were folded: Dagster is opened only where it never was there.

        Raises:
            SettingsError: the database cannot be reached, or goes by another clock.
        """
        from falcon_assets.history.platform.open_ledger import open_tables  # noqa: PLC0415 - needs the database

        return open_tables(self.settings) or self.ledger.engine

    def tables_caught_up(self) -> Engine:
        """:attr:`tables` with all of Dagster's history, which is opened only where some of it is not in them."""
        from falcon_assets.history.platform.open_ledger import is_folded  # noqa: PLC0415 - needs the database

        if not is_folded(self.tables):
            self.ledger.catch_up()
        return self.tables

    @cached_property
    def database(self) -> Engine:
        """The ledger's tables, for who needs nothing of Dagster, whose instance is not opened.

        Raises:
            SettingsError: the database cannot be reached.
        """
        from falcon_assets.history.platform.open_ledger import ledger_engine  # noqa: PLC0415 - takes seconds

        engine = ledger_engine(self.settings)
        self._opened.callback(engine.dispose)
        return engine

    @contextmanager
    def recorded(self) -> Iterator[Connection | None]:
        """A connection to :attr:`database`; None where there is none yet: none is made.

        Raises:
            SettingsError: it cannot be reached.
        """
        if not (self.settings.database_url or (self.settings.home / "postgres").exists()):
            yield None
            return
        with self.database.connect() as connection:
            yield connection

    def set_clock(self, *, anew: bool) -> None:
        """Lets the database go by the clock of the settings.

        Args:
            anew: Also where another simulated clock ran, which nothing goes by any more.

        Raises:
            SettingsError: the database goes by another clock.
        """
        from falcon_assets.history.platform.open_ledger import set_clock  # noqa: PLC0415 - takes seconds

        set_clock(self.settings, anew=anew)


@contextmanager
def open_installation(
    settings: Settings | None = None, instance: DagsterInstance | None = None
) -> Iterator[Installation]:
    """The installation of these settings, else of the environment; what was opened is closed at the end.

    Args:
        settings: How it is set up; None: as the environment says.
        instance: Dagster's instance, where it is open already; it is left open.

    Raises:
        SettingsError: a variable of the environment is malformed.
    """
    with ExitStack() as opened:
        installation = Installation(load_settings() if settings is None else settings, opened)
        if instance is not None:
            installation.__dict__["instance"] = instance
        yield installation
