from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.catalog.checked_entities import relations
from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import QueryError, UnknownEntityError
from falcon_assets.features.entities import dependencies
from falcon_assets.features.entities.dependencies import Need, entity_dependencies, needs_of
from falcon_assets.features.entities.given import stored_definition
from falcon_assets.features.entities.listing import Entity, list_entities, show_entity
from falcon_assets.features.entities.lookup import lookup
from falcon_assets.model.entity import Entity as AnyEntity
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Query
from tests.builders import make_cluster, make_feed, make_process
from tests.operations.opening import installation_of

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
ENTITIES = f"""\
kind: cluster
name: primary
colo: east
interfaces: {{write: {{endpoint: data/primary}}, execute: {{endpoint: "local[1]"}}}}
# who may
storage_options: {{key: s3cret, other: {{env: NAME}}}}
acl: {{owner: etl}}
---
kind: cluster
name: lake
colo: west
interfaces: {{write: {{endpoint: "s3://Lake/data"}}, execute: {{endpoint: "local[1]"}}}}
---
kind: feed
name: raw
description: As it lands
tags: {{team: landing}}
frequency: hours(1)
locations:
  data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"
  stats: "/stats/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"
clusters:
  - name: primary
    {SPAN}
    retention:
      limit: days(9)
      action: archive
      archive_to: "/old/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"
      archive_cluster: lake
  - {{name: lake, {SPAN}}}
---
kind: feed
name: made
tags: {{team: analytics}}
frequency: days(1)
locations: {{data: "file:///other/made/${{YEAR}}/${{MONTH}}/${{DAY}}"}}
clusters: [{{name: primary, {SPAN}}}]
---
kind: process
name: make
tags: {{team: analytics, tier: gold}}
pipelines: [daily]
frequency: days(1)
inputs: [{{name: rows, feed: raw, start: "today(0,0)", end: "today(23,0)"}}]
outputs: [{{name: out, feed: made, instance: "today(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
clusters: [{{name: primary, {SPAN}}}]
"""


installation = installation_of({"all.yaml": ENTITIES, "a.sql": "SELECT 1"}, "2013-01-03T06:00Z", emptied=False)


FILTERS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "nothing": ([], ["primary", "lake", "raw", "made", "make"]),
    "kind": ([("kind", "Feed")], ["raw", "made"]),
    "name": ([("name", "raw")], ["raw"]),
    "cluster": ([("cluster", "lake")], ["raw"]),
    "pipeline": ([("pipeline", "daily")], ["make"]),
    "owner": ([("owner", "etl")], ["primary"]),
    "tag": ([("tag", "team=analytics")], ["made", "make"]),
    "name of a tag": ([("tag", "team")], ["raw", "made", "make"]),
    "all tags": ([("tag", "team=analytics"), ("tag", "tier=gold")], ["make"]),
    "any of a field": ([("name", "raw"), ("name", "make")], ["raw", "make"]),
    "all fields": ([("tag", "team=analytics"), ("kind", "feed")], ["made"]),
    "status": ([("status", "running")], []),
}


@pytest.mark.parametrize(("filters", "names"), FILTERS.values(), ids=FILTERS)
def test_filters(installation: Installation, filters: list[tuple[str, str]], names: list[str]) -> None:
    found = list_entities(installation, Query(tuple(filters)))
    assert ([one.name for one in found.items], found.total) == (names, len(names))


def test_text_is_searched_for_in_names_descriptions_and_tags(installation: Installation) -> None:
    assert [one.name for one in list_entities(installation, text="LAND").items] == ["raw"]
    assert [one.name for one in list_entities(installation, text="ma").items] == ["primary", "made", "make"]


def test_pages_hold_everything_once(installation: Installation) -> None:
    names, offset = [], 0
    while offset is not None:
        page = list_entities(installation, Query(sort="-name", offset=offset, limit=2))
        names += [one.name for one in page.items]
        assert page.total == 5
        offset = page.next
    assert names == ["raw", "primary", "make", "made", "lake"]


def test_a_field_that_is_not_there(installation: Installation) -> None:
    with pytest.raises(QueryError, match="there is no field 'colour'"):
        list_entities(installation, Query(sort="colour"))


def test_secrets_are_not_shown(installation: Installation) -> None:
    data = show_entity(installation, "primary").as_data()
    assert data["definition"]["storage_options"] == {"key": "*****", "other": {"env": "NAME"}}
    text = stored_definition(installation, "primary")
    assert "storage_options: {key: *****, other: {env: NAME}}\n" in text
    assert "# who may\n" in text


def test_data_of_an_entity(installation: Installation) -> None:
    data = show_entity(installation, "make").as_data()
    assert {key: value for key, value in data.items() if key != "definition"} == {
        "name": "make",
        "kind": "process",
        "status": "SUBMITTED",
        "clusters": ["primary"],
        "pipelines": ["daily"],
        "tags": {"team": "analytics", "tier": "gold"},
        "owner": None,
    }
    assert isinstance(show_entity(installation, "raw"), Entity)


def test_what_is_not_there(installation: Installation) -> None:
    with pytest.raises(UnknownEntityError, match=r"there is no entity 'rw' \(did you mean 'raw'\?\)"):
        show_entity(installation, "rw")


def test_dependencies(installation: Installation) -> None:
    def flat(tree: dict[str, Any]) -> list[Any]:
        return [(one["name"], one["roles"], flat(one)) for one in tree["entities"]]

    needs, needed_by = entity_dependencies(installation, "make")
    raw = ("raw", ["input"], [("primary", ["cluster"], []), ("lake", ["archive", "cluster"], [])])
    made = ("made", ["output"], [("primary", ["cluster"], [])])
    assert flat(needs.as_data()) == [raw, made, ("primary", ["cluster"], [])]
    assert needed_by.below == ()
    needed_by = entity_dependencies(installation, "lake")[1]
    assert flat(needed_by.as_data()) == [("raw", ["archive", "cluster"], [("make", ["input"], [])])]


def test_definitions_are_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster has thousands of feeds, each with its readers."""
    cluster, asked = make_cluster(), list[str]()
    feeds = {f"f{n}": make_feed(name=f"f{n}") for n in range(20)}
    reading = {name: {"name": "rows", "feed": name, "start": "now(0,0)", "end": "now(0,0)"} for name in feeds}
    processes = {f"p{name}": make_process(name=f"p{name}", inputs=[one], outputs=[]) for name, one in reading.items()}
    clusters = {cluster.name: cluster}
    related = relations(feeds.values(), processes.values())
    store = EntityStore(Path(), clusters, feeds, processes, {}, {}, {}, clusters, related)

    def counted(entity: AnyEntity) -> Iterator[Need]:
        asked.append(entity.name)
        return needs_of(entity)

    monkeypatch.setattr(dependencies, "needs_of", counted)
    tree = dependencies.that_need_it(dependencies.users_of(store), cluster)
    assert len(tree.below) == 40
    assert all(len(one.below) == 1 for one in tree.below[:20])
    assert len(asked) == 41


HOUR = "2013-01-02T03:00Z"
PATHS: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
    "on a cluster": ("/raw/2013-01-02/03", [("raw", "primary", "data", HOUR), ("raw", "lake", "data", HOUR)]),
    "of this machine": ("{home}/data/primary/raw/2013-01-02/03/part-0", [("raw", "primary", "data", HOUR)]),
    "a URL": ("file://{home}/data/primary//raw/2013-01-02/03/", [("raw", "primary", "data", HOUR)]),
    "a URL of a store": ("s3://Lake/data/raw/2013-01-02/03/x/y", [("raw", "lake", "data", HOUR)]),
    "a location that is a URL": ("file:///other/made/2013/01/02", [("made", "primary", "data", "2013-01-02T00:00Z")]),
    "statistics": (
        "/stats/2013-01-02/03",
        [("raw", "primary", "stats", HOUR), ("raw", "lake", "stats", HOUR)],
    ),
    "another bucket": ("s3://lake/data/raw/2013-01-02/03", []),
    "no instance": ("/raw/2015-01-02/03", []),
    "above the instances": ("/raw/2013-01-02", []),
    "nothing": ("", []),
    "all": ("/", []),
}


@pytest.mark.parametrize(("path", "owners"), PATHS.values(), ids=PATHS)
def test_lookup(installation: Installation, path: str, owners: list[tuple[str, str, str, str]]) -> None:
    found = lookup(installation, path.format(home=installation.settings.home))
    assert [tuple(one.as_data().values()) for one in found.items] == owners
