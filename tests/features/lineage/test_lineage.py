"""Who may see what of a graph, and what is chosen where nothing is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import delete, insert

from falcon_assets.errors import DeniedError, UnknownEntityError
from falcon_assets.features.lineage.asking import lineage_diff, show_lineage
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.history.tables import DEFINITION_VERSIONS
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml
from tests.features.lineage.lineage_rows import EDGES, ROWS, T, version_row, write_versions

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}}}]
acl: {{owner: {owner}, permission: "0700"}}
"""


@pytest.fixture
def world(installed: Callable[[str], Installation]) -> Installation:
    """``raw`` belongs to somebody else, and ``sums`` is deleted."""
    own = installed(cluster_yaml())
    feeds = FEED.format(name="raw", owner="somebody") + FEED.format(name="clean", owner=own.settings.user)
    made = installed(cluster_yaml() + feeds)
    write_versions(made, ROWS, EDGES)
    return made


def test_versions_of_feeds_that_others_own_are_left_out(world: Installation) -> None:
    found = show_lineage(world, VersionQuery("sums", T))
    assert {one.feed for one in found.graph.versions.values()} == {"sums", "clean"}
    assert (found.hidden, found.as_data()["hidden"]) == (1, 1)
    assert lineage_diff(world, VersionQuery("clean", T)).inputs == []
    with pytest.raises(DeniedError, match="may not read feed 'raw', which belongs to 'somebody'"):
        show_lineage(world, VersionQuery("raw", T))


def test_the_definitions_of_feeds_and_clusters_that_differ(world: Installation) -> None:
    texts = {
        ("cluster", "primary"): ("name: primary", "name: primary\nproperties: {api_token: *****, spark.x: '2'}"),
        ("feed", "raw"): ("schema: a int", "schema: b int"),
        ("feed", "clean"): ("schema: a int\noptions: {sep: x}", "schema: a bigint\noptions: {sep: y}"),
        ("process", "cleanse"): ("workflow: {path: a.sql}", "workflow: {path: b.sql}"),
        ("feed", "others"): ("schema: a int", "schema: b int"),
    }
    made = {3: T.replace(minute=10), 4: T.replace(minute=20)}
    write_versions(world, [{**row, "made_at": made[row["id"]]} if row["id"] in made else row for row in ROWS], EDGES)
    said = {"operation": "load", "actor": "me", "reason": "", "workflow_hash": None}
    rows = [
        {"kind": kind, "name": name, "version": version, "text": f"kind: {kind}\n{text}", "text_hash": text, **said}
        | {"since": T.replace(minute=version * 7)}
        for (kind, name), both in texts.items()
        for version, text in enumerate((*both, f"later: {kind}"), 1)
    ]
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(DEFINITION_VERSIONS))
        connection.execute(insert(DEFINITION_VERSIONS), rows)
    found = lineage_diff(world, VersionQuery("clean", T))
    assert found.causes == [
        "definition 1 and 2",
        "the text of the definition changed",
        "process cleanse: workflow.path",
        "feed clean: schema, options.sep",
        "cluster primary: properties",
    ]
    assert found.as_data()["definitions"][1] == {
        **{"kind": "feed", "name": "clean", "from": 1, "to": 2},
        "keys": ["schema", "options.sep"],
    }


def test_the_present_version_else_the_last(world: Installation) -> None:
    assert show_lineage(world, VersionQuery("sums", T)).version.version == "c2"
    gone = [version_row(7, "clean", "b3", "EVICTED"), version_row(8, "sums", "c2", "EVICTED")]
    write_versions(world, gone, {})
    assert show_lineage(world, VersionQuery("clean", T)).version.version == "b2"
    assert show_lineage(world, VersionQuery("sums", T)).version.version == "c2"


def test_a_feed_on_several_clusters(world: Installation) -> None:
    write_versions(world, [version_row(7, "sums", "c2", cluster="backup")], {})
    with pytest.raises(UnknownEntityError, match=r"say which one with --cluster \(backup, primary\)"):
        show_lineage(world, VersionQuery("sums", T))
    assert show_lineage(world, VersionQuery("sums", T, "backup")).version.number == 7
