"""Versions of a table: listed, restored with a record, and evicted by passes, with both kinds of catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.versions.operations import instance_versions, restore_instance
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.storage.output_target import output_target
from tests.operations.opening import OpenAt
from tests.records import read_record
from tests.registries import HIVE_IN_SOAK, KINDS, Tables, endpoint_of
from tests.versioned import ENTITIES, place

FILES = """availability_flag: _SUCCESS
locations: {data: "/totals/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
"""
FEED = """format: parquet
table: {uri: "catalog:default:TABLE#hour=${YEAR}-${MONTH}-${DAY}-${HOUR}", create: true}
"""


@pytest.mark.parametrize("kind", HIVE_IN_SOAK)
def test_versions_of_a_table(
    kind: str,
    request: pytest.FixtureRequest,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    open_at: OpenAt,
    tmp_path: Path,
) -> None:
    endpoint = endpoint_of(request, kind)
    hour = parse_instant(f"2013-01-01T0{KINDS.index(kind)}:00Z")  # they share a database
    name = Tables(endpoint, tmp_path).name
    declared = ENTITIES.replace("interfaces: {", f'interfaces: {{registry: {{endpoint: "{endpoint}"}}, ')
    declared = declared.replace(FILES, FEED.replace("TABLE", name))
    write_entities({"all.yaml": declared, "all.sql": "SELECT * FROM raw"})
    with open_at("2013-01-01T05:30Z") as now:
        one, two, three = (_publish(now, hour, number) for number in (1, 2, 3))
        states = {row.version: row.state for row in instance_versions(now, "totals", hour).versions}
        assert states == {one: "KEPT", two: "KEPT", three: "AVAILABLE"}
        query = InstanceQuery("totals", start=hour)
        done = restore_instance(now, two, InstanceRequest(query, reason="three was wrong"))
        assert (done.changed, done.before, done.version, _present(now, hour)) == (True, three, two, 2)
        assert not restore_instance(now, two, InstanceRequest(query)).changed
        key = dg.AssetKey(["primary", "totals"])
        asked = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[format_instant(hour)])
        said = read_record(FeedInstanceAvailable, now.ledger.instance.fetch_materializations(asked, 1).records[0])
        assert (said.version, said.restored_by) == (two, now.settings.user)
        assert {kept.version for kept in said.kept_versions or ()} == {one, three}
        four = _publish(now, hour, 4)
        assert _pass(now) == PassResult(0, 0, (), 0, 1)
        states = {row.version: row.state for row in instance_versions(now, "totals", hour).versions}
        assert states[four] == "AVAILABLE"
        assert sorted(states[each] for each in (one, two, three)) == ["KEPT", "KEPT", "REPLACED"]  # of one minute
        assert _pass(now).versions == 0
        root = now.settings.entity_defs / "all.yaml"
        root.write_text(root.read_text().replace("versions: {keep: 2, for: hours(6)}\n", ""))
        now.forget_entities()
        idle = RetentionPass(now.entities, now.entities.cluster("primary"), [], now.settings, 0)
        assert idle.has_leftovers(now.ledger)
        assert _pass(now, idle).versions == 2
        assert _present(now, hour) == 4


def _publish(installation: Installation, hour: datetime, number: int) -> str:
    """As a run of ``add-up`` does; the version."""
    found = place(installation, hour)
    target = replace(output_target(found.feed, hour, found.path), format="parquet", makes_table=True)
    with found.storage.publish("add-up", {"out": target}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir()
        pq.write_table(pa.table({"number": [number]}), folder / "part-0.parquet")
        done = publication.commit("out")
    fresh = place(installation, hour).storage.store
    available = FeedInstanceAvailable(
        *("primary", "totals", hour, done.version, installation.settings.now(), done.bytes, 1, done.files),
        process="add-up",
        nominal=hour,
        kept_versions=kept_versions(fresh, found.feed, hour),
    )
    event = materialization(dg.AssetKey(["primary", "totals"]), format_instant(hour), available)
    installation.ledger.instance.report_runless_asset_event(event)
    installation.ledger.catch_up()
    return done.version


def _present(installation: Installation, hour: datetime) -> int:
    found = place(installation, hour)
    with found.storage.reading(found.path, None) as read:
        (url,) = read.partitions[0].partition.places
    where = Path(urlsplit(url).path)
    (file,) = where.glob("*.parquet") if where.is_dir() else [where]
    return int(pq.read_table(file, partitioning=None)["number"][0].as_py())


def _pass(installation: Installation, passing: RetentionPass | None = None) -> PassResult:
    entities = installation.entities

    def record(events: Sequence[dg.AssetObservation]) -> None:
        for event in events:
            installation.ledger.instance.report_runless_asset_event(event)

    feeds = [entities.feed("totals")]
    retention = passing or RetentionPass(entities, entities.cluster("primary"), feeds, installation.settings, 0)
    passed = retention.run(installation.ledger, "run", record)
    installation.ledger.catch_up()
    return passed
