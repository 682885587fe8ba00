"""Look-up of the feed and the instance that a path belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy.exc import OperationalError

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import SettingsError
from falcon_assets.instances.store.newest_instances import newest_recorded
from falcon_assets.model.access import may_read
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.model.store_url import store_url
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import Fields, Page, Query, select
from falcon_assets.planning.instance_paths import InstancePaths


@dataclass(frozen=True)
class PathOwner(Result):
    """An instance of a feed that a path belongs to; ``location`` is ``data``, ``stats`` or ``meta``."""

    feed: str
    cluster: str
    location: str
    instance: Instant


FIELDS: Fields[PathOwner] = {
    "feed": lambda one: [one.feed],
    "cluster": lambda one: [one.cluster],
    "location": lambda one: [one.location],
    "instance": lambda one: [format_instant(one.instance)],
}


def lookup(installation: Installation, path: str, query: Query | None = None) -> Page[PathOwner]:
    """Finds the instances of readable feeds, of all colos, that a path belongs to.

    A path inside an instance counts. The instances of a snapshot feed share one path: the newest recorded one is
    returned, else the newest that is due.
    """
    entities, who = installation.all_entities, acting(installation.settings)
    newest = partial(_newest, installation)
    found = path_owners(entities, path.strip(), installation.settings.home, Path.cwd(), newest)
    known = [one for one in found if may_read(entities.feed(one.feed).acl, who)]
    return select(known, query or Query(), FIELDS)


def path_owners(
    entities: EntityStore, path: str, home: Path, folder: Path, newest: Callable[[InstancePaths], datetime]
) -> Iterator[PathOwner]:
    """:func:`lookup` in these entities; ``home`` is the folder of bare endpoints, ``folder`` that of relative paths."""
    for feed in entities.feeds.values():
        for cluster, _ in entities.feed_clusters(feed):
            for location, instance in _owned(InstancePaths(feed, cluster), path, home, folder, newest):
                yield PathOwner(feed.name, cluster.name, location, instance)


def _newest(installation: Installation, paths: InstancePaths) -> datetime:
    feed, line = paths.feed.name, paths.timeline
    with suppress(SettingsError, OperationalError), installation.recorded() as connection:
        found = newest_recorded(connection, paths.cluster.name, [feed]) if connection else {}
        if feed in found:
            return found[feed].instance
    return line.at_or_before(installation.settings.now()) or line.start


def _owned(
    paths: InstancePaths, path: str, home: Path, folder: Path, newest: Callable[[InstancePaths], datetime]
) -> Iterator[tuple[str, datetime]]:
    feed, cluster = paths.feed, paths.cluster
    if feed.table_on(cluster.name):
        is_snapshot = feed.snapshot and path == paths.template.text
        instance = newest(paths) if is_snapshot else paths.instance(path)
        if instance is not None:
            yield "data", instance
        return
    for location, template in paths.templates():
        place = paths.place(template)
        volumes = [store_url(one, home) for one in cluster.interfaces.write.volumes]
        below = (_below(root, path, folder, bare=not place.root) for root in ([place.root] if place.root else volumes))
        for inside in dict.fromkeys(one for each in below for one in each):
            if feed.snapshot and not place.template.is_timed:
                if place.template.text in _ancestors(inside):
                    yield location, newest(paths)
                    break
                continue
            found = (paths.instance(candidate, place.template) for candidate in _ancestors(inside))
            instance = next((one for one in found if one is not None), None)
            if instance is not None:
                yield location, instance
                break


def _below(root: str, path: str, folder: Path, *, bare: bool) -> Iterator[str]:
    """Yields the path below the root of a store: read as a URL, as a local path, and as one on the cluster."""
    url = store_url(path if "://" in path else str(folder / path), Path("/"))
    scheme, _, place = url.partition("://")
    own_scheme, _, own_place = root.partition("://")
    inside = "/" + "/".join(_steps(place))
    prefix = "/" + "/".join(_steps(own_place))
    if scheme.lower() == own_scheme.lower() and inside.startswith(prefix.rstrip("/") + "/"):
        yield inside[len(prefix.rstrip("/")) :]
    if bare and "://" not in path:
        yield "/" + "/".join(_steps(path))


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _ancestors(path: str) -> Iterator[str]:
    steps = _steps(path)
    for length in range(len(steps), 0, -1):
        yield "/" + "/".join(steps[:length])
