"""Recorded clusters and feeds: read from their texts, and accessed as the present ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from falcon_assets.catalog.hidden_values import UNKNOWN, WITHOUT, shown_hidden, with_present_values
from falcon_assets.catalog.stored_tree import has_hidden_values
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.errors import OldDefinitionError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed, FeedCluster, Locations
from falcon_assets.model.process import Process
from falcon_assets.model.secret_values import SECRET_KEY

EntityT = TypeVar("EntityT", Cluster, Feed)

_OF_SQL = "spark.sql."


def recorded_entity(model: type[EntityT], name: str, text: str, now: EntityT | None) -> EntityT:
    """Returns the recorded entity with the present secrets; storage options that are not recorded are left out.

    ``now`` is the present entity; None: it is not declared any more.

    Raises:
        OldDefinitionError: this version of the package does not understand it, or its secrets are unknown.
    """
    if isinstance(now, Feed):
        _require_format(recorded_data(name, text), now)
    data = recorded_data(name, with_present_values(text, plain_values(now), model.__name__.lower(), WITHOUT))
    try:
        return model.model_validate(_without_storage_options(data) if has_hidden_values(text) else data)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, one["loc"])) for one in error.errors())
        raise OldDefinitionError(f"it is recorded with what is not understood any more: {where}") from error


def plain_values(entity: Cluster | Feed | Process | None) -> Any:
    """Returns an entity's values under the keys of its definition; None: there is none."""
    return None if entity is None else entity.model_dump(mode="json", by_alias=True, exclude_none=True)


def recorded_data(name: str, text: str) -> Any:
    """Returns the values of a recorded text as they were written, with ``hidden`` for hidden ones.

    Raises:
        OldDefinitionError: it cannot be read.
    """
    files = Files()
    read_file(Path(name), shown_hidden(text).encode(), files)
    for document in files.documents:
        return document.data
    raise OldDefinitionError(f"what is recorded cannot be read: {'; '.join(map(str, files.problems))}")


def _require_format(then: Any, now: Feed) -> None:
    options, was = then.get("options") or {}, then.get("format", now.format)
    if UNKNOWN in options.values() and was != now.format:
        raise OldDefinitionError(
            f"values of its options are not recorded, and its format was {was}, and is {now.format}"
        )


def _without_storage_options(data: Any) -> Any:
    if isinstance(data, dict):
        kept = {key: value for key, value in data.items() if key != SECRET_KEY}
        return {key: _without_storage_options(value) for key, value in kept.items()}
    return [_without_storage_options(one) for one in data] if isinstance(data, list) else data


def reached_as_now(then: Cluster, now: Cluster) -> Cluster:
    """Returns the recorded cluster, reached where it is now.

    Results depend on the recorded colo and on the recorded properties for paths, workflows and Spark SQL. Endpoints,
    storage options and locations are the present ones, as are other ``spark.*``: memory, jars and connectors belong to
    the present Spark.
    """
    decides = {key: value for key, value in then.properties.items() if _decides(key)}
    others = {key: value for key, value in now.properties.items() if not _decides(key)}
    reached = {name: getattr(now, name) for name in ("interfaces", "storage_options", "locations")}
    return then.model_copy(update={**reached, "properties": {**others, **decides}})


def _decides(key: str) -> bool:
    return not key.startswith("spark.") or key.startswith(_OF_SQL)


def opened_as_now(then: Feed, now: Feed, cluster: str) -> Feed:
    """Returns the recorded feed, with the present storage options for URLs among its locations on the cluster."""
    options = now.locations_on(cluster).storage_options
    if options == then.locations_on(cluster).storage_options:
        return then
    return _on(then, cluster, lambda one: _locations(one, storage_options=options))


def lies_as_now(then: Feed, now: Feed, cluster: str) -> Feed:
    """Returns the recorded feed, with the present places of its data on the cluster."""
    locations, table = now.locations_on(cluster), now.table_on(cluster)
    moved = then.model_copy(update={"availability_flag": now.availability_flag, "locations": None, "table": table})
    there = {"locations": locations, "table": None, "path_timezone": now.path_zone_on(cluster)}
    return _on(moved, cluster, lambda one: one.model_copy(update=there))


def _on(feed: Feed, cluster: str, changed: Any) -> Feed:
    clusters = tuple(changed(one) if one.name == cluster else one for one in feed.clusters)
    return feed.model_copy(update={"clusters": clusters})


def _locations(entry: FeedCluster, **update: Any) -> FeedCluster:
    locations = (entry.locations or Locations()).model_copy(update=update)
    return entry.model_copy(update={"locations": locations})
