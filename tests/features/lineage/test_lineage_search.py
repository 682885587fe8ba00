"""Versions are found by anything that is known of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from falcon_assets.errors import QueryError
from falcon_assets.features.lineage.lifecycle_operations import set_lifecycle
from falcon_assets.features.lineage.searching import search_lineage
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.history.database import upsert
from falcon_assets.history.tables import KEPT_VERSIONS
from falcon_assets.operations.audit import PlainRequest
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml
from tests.features.lineage.lineage_rows import EDGES, ROWS, T, version_row, write_versions

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
tags: {{team: {name}-team}}
groups: [all, of-{name}]
lifecycle_status: {status}
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}}}]
acl: {{owner: {owner}, permission: "{mode}"}}
"""
ALL = ["c2", "c1", "b2", "b1", "a2", "a1"]


@pytest.fixture
def world(installed: Callable[[str], Installation]) -> Installation:
    """Versions of ``raw``, which is somebody's, ``clean``, whose are validated, and ``sums``, which is deleted."""
    user = installed(cluster_yaml()).settings.user
    feeds = FEED.format(name="raw", owner="somebody", mode="0755", status="initial")
    feeds += FEED.format(name="clean", owner=user, mode="0700", status="validated")
    feeds += FEED.format(name="secret", owner="somebody", mode="0700", status="initial")
    made = installed(cluster_yaml() + feeds)
    hidden = version_row(9, "secret", "s1")
    write_versions(made, [*ROWS, hidden], EDGES)
    kept = {"cluster": "primary", "feed": "raw", "instance": T, "version": "a1", "path": "/kept", "replaced_at": T}
    with made.ledger.engine.begin() as connection:
        upsert(connection, KEPT_VERSIONS, [kept])
    set_lifecycle(made, VersionQuery("clean", T, version="b1"), "critical", PlainRequest(reason="audited"))
    return made


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ((), ALL),
        (("feed=raw",), ["a2", "a1"]),
        (("feed=raw", "feed=sums"), ["c2", "c1", "a2", "a1"]),
        (("feed=*a*",), ["b2", "b1", "a2", "a1"]),
        (("feed!=*a*",), ["c2", "c1"]),
        (("feed=r_w",), []),
        (("process=cleanse", "status=replaced"), ["b1"]),
        (("status=KEPT",), ["a1"]),
        (("exists=true",), ["c2", "b2", "a2", "a1"]),
        (("exists=false",), ["c1", "b1"]),
        (("late=true",), ["b2"]),
        (("definition>=2",), ["b2"]),
        (("definition<2", "process!=cleanse"), ["c2", "c1"]),
        (("process!=cleanse",), ["c2", "c1", "a2", "a1"]),
        (("bytes>8",), ["a2"]),
        (("run=00000003*",), ["b1"]),
        (("version=b*", "cluster=primary"), ["b2", "b1"]),
        (("cluster=elsewhere",), []),
        (("instance=2013-01-01T00:00Z",), ALL),
        (("instance>2013-01-01T00:00Z",), []),
        (("seen_at<=2013-01-01T00:03Z",), ["b1", "a2", "a1"]),
        (("lifecycle=critical",), ["b1"]),
        (("lifecycle=validated",), ["b2"]),
        (("lifecycle!=initial",), ["b2", "b1"]),
        (("archived_to=/archive",), ["c1"]),
        (("owner=somebody",), ["a2", "a1"]),
        (("owner=somebody", "feed=clean"), []),
        (("owner=nobody",), []),
        (("tag=team=clean-team",), ["b2", "b1"]),
        (("tag=team", "owner!=somebody"), ["b2", "b1"]),
        (("group=all", " version = a1 "), ["a1"]),
        (("feed=raw'; DROP TABLE x; --",), []),
        (("feed=r\udcff\0w",), []),
    ],
)
def test_what_is_found(world: Installation, where: tuple[str, ...], found: list[str]) -> None:
    assert [one.version for one in search_lineage(world, where).items] == found


def test_parts(world: Installation) -> None:
    seen, after = [], None
    for _ in range(3):
        part = search_lineage(world, after=after, limit=2)
        seen += [one.version for one in part.items]
        after = part.next
    assert (seen, after) == (ALL, None)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("feed", "write FIELD=VALUE"),
        ("colour=red", "there is no field 'colour'"),
        ("status=GONE", "there is no status 'GONE'; there is: AVAILABLE, "),
        ("exists=perhaps", "there is no exists 'perhaps'; there is: true, false"),
        ("feed>raw", "only numbers and times are greater or less"),
        ("bytes=many", "'many' is not a whole number, as bytes is"),
        ("bytes=99999999999999999999", "is not a whole number"),
        ("instance=today", "'today' is not an instant"),
    ],
)
def test_what_cannot_be_understood(world: Installation, where: str, said: str) -> None:
    with pytest.raises(QueryError) as raised:
        search_lineage(world, [where])
    assert said in str(raised.value)


def test_where_a_list_goes_on(world: Installation) -> None:
    with pytest.raises(QueryError, match="'x' is not the `next` of a list"):
        search_lineage(world, after="x")
    later = version_row(10, "sums", "c3", instance=T + timedelta(hours=1))
    write_versions(world, [later], {})
    assert [one.version for one in search_lineage(world, limit=1).items] == ["c3"]
