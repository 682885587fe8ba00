"""Checks of changes: what must stay as it is, and what a user may not write.

Keys must stay whose change would lose computed or landed data (source: Apache Falcon). Definitions that came over the
network name no files of the server: who sends them could have these read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.catalog.yaml_files.documents import Document
from falcon_assets.entities.status import scheduled_since
from falcon_assets.errors import DefinitionStoreError, DeniedError, SettingsError, count_of, printable
from falcon_assets.features.entities.changes import Update
from falcon_assets.history.queries import available_feeds, known_instances
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.entity import Key
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.queue import Queue
from falcon_assets.model.store_url import canonical_url, is_mounted, store_url, url_path
from falcon_assets.operations.data_roots import has_data, moved_from
from falcon_assets.operations.installation import Installation

_NAMED = 3
_OWN = ("FALCON_", "PG", "DAGSTER_")
"""Variables of the environment that are the server's own."""
_LOCAL = ("file:", "local:")
_SHOWN = 100


def require_allowed(installation: Installation, updates: Sequence[Update]) -> None:
    """Checks an update against the ledger; passes where the database is not available.

    The start of a scheduled entity stays; so do frequency and time zones, which name instances, where instances exist,
    and the place of a cluster with data. DefinitionStoreError says how to proceed.
    """
    starts = {key: text for update in updates for key, text in _other_starts(*update)}
    renamed = {key: text for update in updates for key, text in _other_names(*update)}
    moved = [(before.data, after.data) for before, after in updates if not _roots(before.data) <= _roots(after.data)]
    if not (starts or renamed or moved):
        return
    with suppress(SettingsError, OperationalError), installation.database.connect() as connection:
        for (kind, name), since in scheduled_since(connection, starts).items():
            when = f"{since.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
            raise DefinitionStoreError(
                f"{kind} {name!r} was scheduled on {when}: {starts[kind, name]}; submit a new {kind} under another name"
            )
        for (kind, name), text in renamed.items():
            if number := known_instances(connection, kind, name):
                raise DefinitionStoreError(
                    f"{kind} {name!r} has {count_of(number, 'instance')}: {text}, by which they are named; "
                    f"submit a new {kind} under another name"
                )
        for before, after in moved:
            if left := _roots(before) - _roots(after) if _roots(before) & _roots(after) else ():
                _require_empty_volumes(connection, installation.settings.home, after["name"], sorted(left))
            else:
                _require_empty(connection, before, after)


def require_queues(who: Principal, queues: Mapping[str, Queue], stored: Stored, written: Sequence[Document]) -> None:
    """Raises DeniedError where somebody puts work into a queue that is for others; what is there may stay."""
    for document in written:
        kind, name = document.data["kind"], document.data["name"]
        before = stored.by_key.get((kind, name))
        for entered in _queues(document.data) - _queues(before.data if before else {}):
            queue = queues.get(entered)
            if queue is not None and not (who.is_superuser or not queue.users or who.name in queue.users):
                where = f"{kind} {name!r} into the queue {entered!r}"
                raise DeniedError(f"{who.name} may not put {where}, which is for {', '.join(queue.users)}")


def require_no_server_files(who: Principal, stored: Stored, written: Sequence[Document]) -> None:
    """Raises DeniedError where a definition names more files or secrets of the server than before.

    Admins may; so may those who are on the machine, as they can read the files themselves.
    """
    if who.is_superuser or who.role is Role.ADMIN:
        return
    for document in written:
        kind, name = document.data["kind"], document.data["name"]
        before = stored.by_key.get((kind, name))
        there = {value for _, value in _of_server(before.data, ())} if before else set()
        for path, value in _of_server(document.data, ()):
            if value not in there:
                key, said = ".".join(map(str, path)), printable(value[:_SHOWN])
                raise DeniedError(
                    f"{kind} {name!r}: {key} names {said}, which is on the server: over the network only an admin may"
                )


def _of_server(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where something of the server is named, and what."""
    if isinstance(value, dict):
        if isinstance(file := value.get("file"), str) and len(value) == 1:
            yield (*path, "file"), f"the file {file}"
        if isinstance(variable := value.get("env"), str) and len(value) == 1 and variable.startswith(_OWN):
            yield (*path, "env"), f"the variable {variable}"
        for key, inner in value.items():
            yield from _of_server(inner, (*path, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _of_server(inner, (*path, index))
    elif isinstance(value, str) and (value.strip().lower().startswith(_LOCAL) or _is_outside(value, path)):
        yield path, value


def _is_outside(value: str, path: tuple[str | int, ...]) -> bool:
    """Whether the endpoint of a cluster is a path that is not below FALCON_HOME."""
    is_endpoint = path[-1:] == ("endpoint",) or path[-2:-1] == ("endpoints",)
    if path[:1] != ("interfaces",) or not is_endpoint or "://" in value:
        return False
    return value.startswith(("/", "~")) or ".." in PurePosixPath(value).parts


def _queues(data: Mapping[str, Any]) -> set[str]:
    """The queues of a process, of a feed's or of a flow's imports and exports."""
    places = [data.get("source"), *(data.get("destinations") or ()), *(data.get("clusters") or ())]
    found = [data.get("queue")]
    for entry in filter(lambda one: isinstance(one, dict), places):
        exports = entry.get("export") or ()
        transfers = [entry.get("import"), *(exports if isinstance(exports, list) else [exports])]
        found += [one.get("queue") for one in transfers if isinstance(one, dict)]
    return {one for one in found if isinstance(one, str)}


def _require_empty_volumes(connection: Connection, home: Path, cluster: str, left: Sequence[str]) -> None:
    for volume in left:
        place = store_url(volume, home)
        folder = os.path.realpath(url_path(place)) if is_mounted(place) else url_path(place)
        before = moved_from(connection, cluster, canonical_url(place))
        if any(has_data(connection, cluster, one) for one in (folder, *before)):
            raise DefinitionStoreError(
                f"cluster {cluster!r} cannot lose its volume {volume}: instances on it would be left behind; submit "
                "another cluster, and replicate the feeds to it, or wait until retention has taken them"
            )


def _require_empty(connection: Connection, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    name = after["name"]
    found = available_feeds(connection, name)
    if found:
        more = f" and of {count_of(len(found) - _NAMED, 'other feed')}" if len(found) > _NAMED else ""
        lie = f"{count_of(sum(found.values()), 'instance')} of {', '.join(sorted(found)[:_NAMED])}{more}"
        raise DefinitionStoreError(
            f"cluster {name!r} cannot move from {_said(before)} to {_said(after)}: {lie} would be left behind; "
            "submit another cluster, and replicate the feeds to it"
        )


def _other_starts(before: Any, after: Any) -> Iterator[tuple[Key, str]]:
    key = (after.data["kind"], after.data["name"])
    old, new = _starts(before.data), _starts(after.data)
    for cluster in old.keys() & new.keys():
        if old[cluster] != new[cluster]:
            starts_from = f"{format_instant(old[cluster])} to {format_instant(new[cluster])}"
            yield key, f"the start of its validity on cluster {cluster!r} cannot change from {starts_from}"


def _other_names(before: Any, after: Any) -> Iterator[tuple[Key, str]]:
    for what, old_value, new_value in _renamed(before.data, after.data):
        if old_value != new_value:
            yield (after.data["kind"], after.data["name"]), f"{what} cannot change from {old_value} to {new_value}"


def _renamed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if "frequency" not in before:
        return
    if before["kind"] == "feed":
        old, new = _path_zones(before), _path_zones(after)
        for cluster in sorted(old.keys() & new.keys()):
            yield f"the zone of its paths on cluster {cluster!r}", old[cluster], new[cluster]
    yield "its timezone", _calendar_zone(before), _calendar_zone(after)
    old_step, new_step = (str(Frequency.parse(str(one["frequency"]))) for one in (before, after))
    yield "its frequency", old_step, new_step


def _calendar_zone(data: Mapping[str, Any]) -> str:
    is_absolute = Frequency.parse(str(data["frequency"])).is_absolute
    return "UTC" if is_absolute else str(data.get("timezone") or "UTC")


def _path_zones(data: Mapping[str, Any]) -> dict[str, str]:
    common = data.get("path_timezone") or _calendar_zone(data)
    return {one["name"]: str(one.get("path_timezone") or common) for one in data.get("clusters", ())}


def _starts(data: Mapping[str, Any]) -> dict[str, datetime]:
    return {one["name"]: parse_instant(one["validity"]["start"]) for one in data.get("clusters", ())}


def _roots(data: Mapping[str, Any]) -> set[str]:
    written = data["interfaces"]["write"] if data["kind"] == "cluster" else {}
    return {str(one) for one in (*written.get("endpoints", ()), written.get("endpoint")) if one}


def _said(data: Mapping[str, Any]) -> str:
    return ", ".join(sorted(_roots(data)))
