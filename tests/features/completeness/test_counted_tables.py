"""Records of tables are counted where nobody reports them: from the manifests of Iceberg, from the files of Hive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from falcon_assets.features.completeness.operations import report_parts
from falcon_assets.features.completeness.records import ReportedPart
from falcon_assets.features.landing.collector import Collector
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import FeedInstanceInfo, InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.operations.opening import OpenAt
from tests.registries import KINDS, Tables, endpoint_of

ENTITIES = """
kind: cluster
name: primary
interfaces:
  write: {{endpoint: data/primary}}
  execute: {{endpoint: "local[1]"}}
  registry: {{endpoint: "{endpoint}"}}
---
kind: feed
name: {name}
frequency: hours(1)
completeness: {{at_least: 99, expected: reported}}
table: {{uri: "catalog:default:{table}#ds=${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}};region=*"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
"""
HOUR = parse_instant("2013-01-01T00:00Z")


@pytest.mark.parametrize("kind", KINDS)
def test_an_instance_of_a_table_is_there_when_it_has_enough_rows(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path], request: pytest.FixtureRequest, kind: str
) -> None:
    """In Hive also with files of another format than the table's."""
    endpoint, feed = endpoint_of(request, kind), f"odd-{kind}"

    def collect(installation: Installation) -> int:
        store = installation.entities
        found = Collector(store, store.cluster("primary"), installation.settings).collect(installation.ledger, 60)
        assert not found.problems
        return found.recorded

    def listed(installation: Installation) -> FeedInstanceInfo:
        (found,) = list_instances(installation, InstanceQuery(feed, "feed", start=HOUR)).items
        assert isinstance(found, FeedInstanceInfo)
        return found

    with open_at("2013-01-01T01:30Z") as installation:
        home = installation.settings.home
        tables = Tables(endpoint, home)
        write_entities({"all.yaml": ENTITIES.format(endpoint=endpoint, name=feed, table=tables.name)})
        tables.make()
        tables.land(("2013-01-01-00", "US"), 1, 2)
        report_parts(installation, feed, HOUR, [ReportedPart("hub", expected=5)])
        assert collect(installation) == 0
        withheld = listed(installation).reason
        assert withheld and withheld["text"].startswith("has 40 % of 99 % since")
        if kind == "hive":
            (home / "orc").mkdir()
            orc.write_table(pa.table({"carrier": ["UA"] * 3, "flight": [3, 4, 5]}), home / "orc/part.orc")
            tables.catalog.switch("default", tables.name, ("2013-01-01-00", "EU"), (home / "orc").as_uri(), {}, None)
        else:
            tables.land(("2013-01-01-00", "EU"), 3, 4, 5)
        assert collect(installation) == 1
        assert listed(installation).as_data()["feed"]["completeness"]["records"] == 5
