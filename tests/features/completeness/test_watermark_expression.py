"""The watermark in expressions: properties of processes have it, and whatever decides what is read cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from falcon_assets.features.landing.collector import Collector
from falcon_assets.instances.views.explain import explain
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.catalog.definition_files import FILES, problems
from tests.operations.opening import OpenAt

_ON = "clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]"
ENTITIES = f"""
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "local[1]"}}}}
---
kind: feed
name: odd-clicks
frequency: hours(1)
completeness: {{at_least: 100, expected: reported, at_most_wait: minutes(1)}}
locations: {{data: "/clicks/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
{_ON}
---
kind: process
name: reading
frequency: days(1)
timezone: Asia/Kolkata
{_ON}
properties:
  up_to: "${{watermark('odd-clicks')}}"
  day: "${{formatTime(dateOffset(watermark('odd-clicks'), 1, 'DAY'), 'yyyy-MM-dd HH:mm')}}"
workflow: {{engine: spark-sql, path: a.sql}}
"""


def _watermarks(installation: Installation) -> list[float]:
    """Those that the UI shows, the newest first."""
    found = installation.ledger.instance.fetch_observations(dg.AssetKey(["primary", "odd-clicks"]), 100)
    shown = [one.asset_observation.metadata.get("watermark") for one in found.records if one.asset_observation]
    return [one.value for one in shown if isinstance(one, dg.TimestampMetadataValue)]


def test_a_property_has_the_watermark_as_the_ledger_knows_it(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at("2013-01-01T05:30Z") as installation:
        store, first = installation.entities, parse_instant("2013-01-01T00:00Z")

        def properties() -> tuple[str, str]:
            found = explain(installation, "reading", first).properties
            return found["up_to"], found["day"]

        assert properties() == ("2013-01-01T00:00Z", "2013-01-02 05:30")
        for hour in (0, 1, 3):
            folder = installation.settings.home / f"data/clicks/2013-01-01-{hour:02}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"n": [1]}), folder / "part.parquet")
        Collector(store, store.cluster("primary"), installation.settings).collect(installation.ledger, 60)
        installation.ledger.catch_up()
        assert properties() == ("2013-01-01T02:00Z", "2013-01-02 07:30")
        assert _watermarks(installation) == [parse_instant("2013-01-01T02:00Z").timestamp()]


_ARGS = "{engine: spark-submit, path: a.py, args: [\"${watermark('raw')}\"]}"
WRONG = {
    "window": (
        'start: "now(0,0)"',
        "start: \"dateOffset(watermark('raw'), 0, 'DAY')\"",
        "watermark(...) is known only when an instance runs, and which instances it reads and writes is known before: "
        "use it in properties",
    ),
    "arguments": (
        "{engine: spark-sql, path: hourly.sql}",
        _ARGS,
        "watermark(...) is known only where an instance runs, in the properties of a process on cluster 'primary'",
    ),
    "unknown": (
        "workflow",
        "properties: {a: \"${watermark('row')}\"}\nworkflow",
        "watermark: unknown feed 'row' (did you mean 'raw'?) on cluster 'primary'",
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_it_cannot_stand_where_nothing_knows_it(tmp_path: Path, old: str, new: str, said: str) -> None:
    written = FILES["processes.yaml"].replace(old, new)
    line = next(k for k, one in enumerate(written.splitlines(), 1) if "watermark" in one)
    found = problems(tmp_path, {**FILES, "processes.yaml": written, "a.py": ""})
    assert any(one.startswith(f"processes.yaml:{line}: ") and one.endswith(said) for one in found), found
