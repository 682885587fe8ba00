"""With which version of its definition what runs again will run: who has just mended it means the latest one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path

from sqlalchemy import Connection

from falcon_assets.catalog.stored_tree import Key as Entity
from falcon_assets.errors import DefinitionStoreError, InvalidDefinitionsError, count_of
from falcon_assets.ledger.entities.definition_versions import unrecorded_versions
from falcon_assets.ledger.entities.versions_of_instances import EntityVersions
from falcon_assets.ledger.instances.instance_pages import Key
from falcon_assets.operations.instances.selection import Selected
from falcon_assets.planning.rules.definition_versions import VersionSince


def definition_notes(
    connection: Connection, root: Path, again: Sequence[Selected], latest: Collection[Key], now: datetime
) -> list[str]:
    """For each process a sentence on the versions that its instances will run with, and how to take the latest.

    Args:
        connection: To the ledger.
        root: The folder of the definitions: what has changed there is a version as soon as something runs.
        again: The instances that are to run again, by entity, cluster and time.
        latest: Those of them that are to run with the latest version.
        now: The time.
    """
    new: Mapping[Entity, int] = {}
    with suppress(InvalidDefinitionsError, DefinitionStoreError):  # validation says it
        new = unrecorded_versions(connection, root)
    return [note for _, own in groupby(again, key=_process) for note in _notes(list(own), new, latest, now)]


def _process(one: Selected) -> str:
    return one.workload.entity.name


def _notes(own: Sequence[Selected], new: Mapping[Entity, int], latest: Collection[Key], now: datetime) -> Iterator[str]:
    entity = own[0].workload.entity
    key = (entity.kind, entity.name)
    known = own[0].versions.get(key)
    if entity.kind != "process" or known is None:  # copies have no version of their own
        return
    if key in new:
        known = replace(known, versions=(*known.versions, VersionSince(new[key], now)))
    numbers = Counter(known.present if one.key in latest else known.of(one.nominal) for one in own)
    for number, many in sorted(numbers.items(), key=lambda item: item[0] or 0):
        yield _note(entity.name, number, many, known, is_new=key in new)


def _note(process: str, number: int | None, many: int, known: EntityVersions, *, is_new: bool) -> str:
    changed = ", which was changed since and is recorded when something runs" if is_new else ""
    with_it = f"with version {number} of the definition"
    what = count_of(many, f"instance of {process} runs", f"instances of {process} run")
    if number == known.present:
        return f"{what} {with_it}, the latest{changed}"
    return f"{what} {with_it}, as before, not with the latest, {known.present}{changed}: --use-latest takes that one"
