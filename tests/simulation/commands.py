"""What people do to processes in a world."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, command
from falcon_assets.history.platform.open_ledger import Ledger
from tests.simulation.world import World


def obey(world: World, store: EntityStore, ledger: Ledger, now: datetime) -> None:
    """Carries out the commands of a tick."""
    for one in world.commands:
        if one.tick == now:
            status = Status.SUSPENDED if one.verb == "suspend" else Status.RUNNING
            with ledger.engine.begin() as connection:
                command(connection, store.process(one.process), status, now)
