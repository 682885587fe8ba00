"""What else an update of feeds concerns: who reads and writes them, their replications and their retentions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.operations.entities.plan import Update
from falcon_assets.operations.entities.results import Touched
from falcon_assets.planning.workloads.replication_workload import replication_name


def touched_by(stored: Stored, updates: Sequence[Update]) -> tuple[Touched, ...]:
    """What the updates of feeds touch, as it is and as it will be; other updates touch nothing but what they are of."""
    feeds = [(before.data, after.data) for before, after in updates if after.data["kind"] == "feed"]
    names = {after["name"] for _, after in feeds}
    found = {one for sides in feeds for feed in sides for one in _of_feed(feed)}
    for document in stored.files.documents if names else ():
        data = document.data if isinstance(document.data, dict) else {}
        if data.get("kind") == "process":
            used = {one["feed"] for key in ("inputs", "outputs") for one in data.get(key, ())}
            if used & names:
                found.add(Touched("process", data["name"], tuple(one["name"] for one in data["clusters"])))
    return tuple(sorted(found))


def _of_feed(feed: Mapping[str, Any]) -> Iterator[Touched]:
    by_type: dict[str, list[str]] = {"source": [], "target": []}
    for one in feed["clusters"]:
        by_type.get(one.get("type"), []).append(one["name"])
    for source in by_type["source"] if by_type["target"] else ():
        yield Touched("replication", replication_name(feed["name"], source), tuple(by_type["target"]))
    if kept := tuple(one["name"] for one in feed["clusters"] if "retention" in one):
        yield Touched("retention", feed["name"], kept)
