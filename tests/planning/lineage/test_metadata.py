"""What entities say of versions."""

from __future__ import annotations

from falcon_assets.features.lineage.metadata import relations
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import VersionStatus
from tests.builders import make_cluster, make_feed, make_process

T = parse_instant("2013-01-01T00:00Z")
ACL = {"owner": "ann", "group": "etl", "permission": "0755"}


def version(feed: str, process: str | None = None, cluster: str = "primary") -> Version:
    return Version(cluster, feed, T, "v", number=1, status=VersionStatus.AVAILABLE, process=process)


def test_all_that_falcon_knew_of_an_instance() -> None:
    feed = make_feed(name="delays", acl=ACL, groups=["daily"], tags={"topic": "delay"})
    process = make_process(name="p", tags={"cost": "2"}, pipelines=["first", "second"])
    cluster = make_cluster(acl={**ACL, "owner": "ops"}, tags={"tier": "1"})
    found = relations([version("delays", "p")], {"delays": feed}, {"p": process}, {"primary": cluster})
    made = "primary/delays/2013-01-01T00:00Z@v"
    assert {(one.source, one.label, one.target.id) for one in found} == {
        (made, "instance-of", "feed:delays"),
        (made, "stored-in", "cluster:primary"),
        (made, "output-of", "process:p"),
        ("feed:delays", "owned-by", "owner:ann"),
        ("feed:delays", "grouped-as", "group:daily"),
        ("feed:delays", "classified-as", "tag:topic=delay"),
        ("process:p", "classified-as", "tag:cost=2"),
        ("process:p", "pipeline", "pipeline:first"),
        ("process:p", "pipeline", "pipeline:second"),
        ("process:p", "runs-on", "cluster:primary"),
        ("cluster:primary", "owned-by", "owner:ops"),
        ("cluster:primary", "classified-as", "tag:tier=1"),
        ("cluster:primary", "collocated", "colo:east"),
    }
    assert len(found) == len(set(found))


def test_what_was_deleted_is_a_node_of_which_nothing_is_said() -> None:
    found = relations([version("delays", "p"), version("delays", "delays from primary", "backup")], {}, {}, {})
    assert sorted(one.target.id for one in found) == [
        *("cluster:backup", "cluster:primary", "feed:delays", "feed:delays"),
        *("process:p", "replication:delays from primary"),
    ]
