"""Parts with counts arrive for an hour: windows over them become complete each in its moment, and start what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from falcon_assets.features.completeness.operations import report_parts
from falcon_assets.features.completeness.records import ReportedPart
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml
from tests.features.landing.snapshot_tables import run
from tests.operations.opening import OpenAt

SENT = 20_000
"""Records of each slot, in ten parts of two sources: 99.995 % are all but one."""
FEEDS = """
---
kind: feed
name: clicks
frequency: minutes(5)
completeness: {at_least: 99.995, expected: reported}
late_arrival: {cut_off: hours(6)}
compact: {sort: [user_id], target_file_size: 64MB, late_files: 0}
schedule: true
locations: {data: "/clicks/${YEAR}${MONTH}${DAY}-${HOUR}-${MINUTE}"}
clusters: [{name: primary, validity: {start: 2013-01-01T14:00Z, end: 2013-01-01T17:00Z}}]
"""


def _rollup(name: str, frequency: str, more: str = "") -> str:
    return f"""---
kind: feed
name: {name}
frequency: {frequency}
rollup: {{of: [clicks]}}
late_arrival: {{cut_off: hours(6)}}
schedule: true
clusters: [{{name: primary, validity: {{start: 2013-01-01T14:00Z, end: 2013-01-01T17:00Z}}}}]
{more}
"""


def _consumer(name: str, frequency: str, feed: str, start: str = "now(0,0)", late: bool = False) -> str:
    on = "clusters: [{name: primary, validity: {start: 2013-01-01T15:00Z, end: 2013-01-01T17:00Z}}]"
    reruns = "late_process: {policy: backoff, delay: minutes(1), inputs: [{input: read}]}\n" if late else ""
    return f"""---
kind: feed
name: {name}
frequency: {frequency}
locations: {{data: "/{name}/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}-${{MINUTE}}"}}
{on}
---
kind: process
name: make-{name}
frequency: {frequency}
{on}
inputs: [{{name: read, feed: {feed}, start: "{start}", end: "now(0,0)"}}]
outputs: [{{name: made, feed: {name}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: {name}.sql}}
{reruns}schedule: true
"""


ENTITIES = (
    cluster_yaml()
    + FEEDS
    + _rollup("clicks-10min", "minutes(10)")
    + _rollup("clicks-hourly", "hours(1)", "profile: true\nchecks: [{rule: row_count, min: 200000}]")
    + _consumer("features", "hours(1)", "clicks-hourly")
    + _consumer("metric", "minutes(10)", "clicks-10min")
    + _consumer("aggregate", "hours(1)", "clicks-hourly", "today(0,0)", late=True)
)
PROGRAMS = {
    "features.sql": "SELECT user_id, count(*) AS clicks, sum(n) AS n FROM read GROUP BY user_id",
    "metric.sql": "SELECT count(*) AS rows, sum(n) AS n FROM read",
    "aggregate.sql": "SELECT count(*) AS rows, sum(n) AS n FROM read",
}


def at(text: str) -> datetime:
    return parse_instant(f"2013-01-01T{text}Z")


def _folder(installation: Installation, slot: datetime) -> Path:
    return installation.settings.home / f"data/primary/clicks/{slot:%Y%m%d-%H-%M}"


def _write(installation: Installation, slot: datetime, part: str, records: int) -> None:
    """A part as its writer makes it: users in no order."""
    folder = _folder(installation, slot)
    folder.mkdir(parents=True, exist_ok=True)
    users = [(7919 * number + slot.minute) % 101 for number in range(records)]
    pq.write_table(pa.table({"user_id": users, "n": range(records)}), folder / f"{part}.parquet")


def come(installation: Installation, slot: datetime, lacking: int = 0, parts: int = 10) -> None:
    """Parts of a slot with their counts and offsets; of the last one so many records are missing."""
    each, said = SENT // 10, list[ReportedPart]()
    for number in range(10):
        source, offsets = f"ingest-{number % 2}", f"{number * each}..{(number + 1) * each - 1}"
        came = None if number >= parts else each - (lacking if number == 9 else 0)
        said.append(ReportedPart(source, str(number), came, each, offsets=offsets))
        if came is not None:
            _write(installation, slot, f"part-{number}", came)
    report_parts(installation, "clicks", slot, said)


def slots(first: str, last: str) -> list[datetime]:
    number = int((at(last) - at(first)) / timedelta(minutes=5)) + 1
    return [at(first) + timedelta(minutes=5 * one) for one in range(number)]


def there(installation: Installation, feed: str) -> list[str]:
    """The instances that are available, from 15:00 on."""
    found = list_instances(installation, InstanceQuery(feed, "feed", start=at("15:00"), end=at("16:55"))).items
    return sorted(format_instant(one.instance)[11:16] for one in found if one.state.value == "AVAILABLE")


def read_back(installation: Installation, *slots: datetime) -> pa.Table:
    """The rows as a reader that knows nothing of this package has them."""
    return pa.concat_tables([pq.read_table(_folder(installation, one)) for one in slots])


def made(installation: Installation, feed: str, when: str) -> list[dict[str, int]]:
    found: list[dict[str, int]] = pq.read_table(
        installation.settings.home / f"data/primary/{feed}/20130101-{when}"
    ).to_pylist()
    return found


def summed(rows: pa.Table) -> list[dict[str, int]]:
    return [{"rows": rows.num_rows, "n": sum(rows["n"].to_pylist())}]


def test_windows_become_complete_each_in_its_moment(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    write_entities({"all.yaml": ENTITIES, **PROGRAMS})
    with open_at("2013-01-01T15:06Z") as installation:
        for slot in slots("14:00", "14:55"):
            come(installation, slot)
        come(installation, at("15:00"))
        come(installation, at("15:05"), parts=9)
        assert run(installation).trouble == ()
        assert (there(installation, "clicks"), there(installation, "clicks-10min")) == (["15:00"], [])
    with open_at("2013-01-01T15:12Z") as installation:
        come(installation, at("15:05"), lacking=2)  # 99.99 %
        run(installation)
        assert (there(installation, "clicks"), there(installation, "metric")) == (["15:00"], [])
        come(installation, at("15:05"), lacking=1)  # 99.995 %
        run(installation)
        assert (there(installation, "clicks-10min"), there(installation, "metric")) == (["15:00"], ["15:00"])
        assert made(installation, "metric", "15-00") == summed(read_back(installation, at("15:00"), at("15:05")))
    with open_at("2013-01-01T16:06Z") as installation:
        for slot in slots("15:10", "15:50"):
            come(installation, slot)
        come(installation, at("16:00"))
        run(installation)
        tens = ["15:00", "15:10", "15:20", "15:30", "15:40"]
        assert (there(installation, "metric"), there(installation, "clicks-hourly")) == (tens, [])
        come(installation, at("15:55"))
        _write(installation, at("14:20"), "late", 500)
        found = run(installation)
        assert (found.trouble, found.left_out) == ((), {})
        assert there(installation, "metric") == [*tens, "15:50"]
        for feed in ("clicks-hourly", "features", "aggregate"):
            assert there(installation, feed) == ["15:00"]
        _hour_is_right(installation)
    with open_at("2013-01-01T16:12Z") as installation:
        come(installation, at("16:05"))
        run(installation)
        assert (there(installation, "clicks-10min")[-1], there(installation, "metric")[-1]) == ("16:00", "16:00")


def _hour_is_right(installation: Installation) -> None:
    """Five consumers: features, metrics, the aggregate with what came late, checks with a profile, compaction."""
    hour, before = (read_back(installation, *slots(f"{one}:00", f"{one}:55")) for one in (15, 14))
    assert (hour.num_rows, before.num_rows) == (12 * SENT - 1, 12 * SENT + 500)
    clicks = Counter(hour["user_id"].to_pylist())
    assert {one["user_id"]: one["clicks"] for one in made(installation, "features", "15-00")} == clicks
    assert made(installation, "aggregate", "15-00") == summed(pa.concat_tables([before, hour]))
    (checked,) = list_instances(installation, InstanceQuery("clicks-hourly", "feed", start=at("15:00"))).items
    assert checked.as_data()["feed"]["quality"]["text"] == "valid"
    for slot in (*slots("14:00", "14:55"), *slots("15:00", "15:55")):
        (file,) = _folder(installation, slot).glob("*.parquet")
        users = pq.read_table(file)["user_id"].to_pylist()
        assert users == sorted(users)
