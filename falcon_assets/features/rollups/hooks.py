"""Hooks of roll-ups: checks of definitions, sensors, a step of ``falcon run``, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.errors import FalconError
from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.errors import Problem
    from falcon_assets.features.rollups.passes import RollupPass
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.model.cluster import Cluster
    from falcon_assets.planning.reasons import Reason
    from falcon_assets.settings import Settings


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    is_read = any(one.members for process in definitions.processes.values() for one in process.entity.inputs)
    if programs or not (is_read or any(one.entity.rollup for one in definitions.feeds.values())):
        return []
    from falcon_assets.features.rollups.definitions import check_members_read, check_rollups

    return [*check_rollups(definitions), *check_members_read(definitions)]


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    if not store.relations.rollups:
        return dg.Definitions()
    from falcon_assets.features.rollups.sensors import rollup_sensors

    return dg.Definitions(sensors=[*rollup_sensors(store, settings)])


@hookimpl(tryfirst=True)  # before late data, which may be theirs
def foreground_steps(store: EntityStore, settings: Settings, clusters: Sequence[Cluster]) -> _Recording | None:
    if not store.relations.rollups:
        return None
    from falcon_assets.features.rollups.passes import RollupPass

    return _Recording([RollupPass(store, one.name, settings) for one in clusters])


@dataclass(frozen=True)
class _Recording:
    passes: Sequence[RollupPass]

    def step(self, ledger: Ledger) -> dict[str, str]:
        left_out = dict[str, str]()
        for one in self.passes:
            try:
                one.record(ledger)
            except FalconError as error:
                left_out[f"roll-ups on {one.cluster}"] = str(error)
        return left_out


@hookimpl
def missing_reasons(
    connection: Connection, store: EntityStore, keys: Sequence[tuple[str, str, datetime]]
) -> Mapping[tuple[str, str, datetime], Reason]:
    asked = {key: store.feed(key[0]) for key in keys if key[0] in store.relations.rollups}
    if not asked:
        return {}
    from falcon_assets.features.rollups.passes import missing_members

    return dict(missing_members(connection, asked))
