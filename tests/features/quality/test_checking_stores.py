"""Checks and profiles of feeds on stores of every kind, against what boto3, Hadoop, PyIceberg and pyarrow read."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import boto3
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo

from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.quality.store import VerdictRow
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.operations.installation import Installation
from tests.builders import SPARK, cluster_yaml
from tests.features.quality.shop import anew, at, checking, verdict
from tests.hdfs_server import Hdfs, on_hdfs
from tests.operations.opening import OpenAt
from tests.registries import Tables, endpoint_of, registry_of
from tests.s3_server import ENVIRON, KEY, SECRET, lake

SCHEMA = pa.schema(
    [("id", pa.int64()), ("item", pa.string()), ("n", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))]
)
FEED = """
---
kind: feed
name: sales
frequency: hours(1)
schedule: true
STORAGE
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
profile: true
checks:
  - {name: enough, rule: row_count, min: 2}
  - {rule: not_null, columns: [item], severity: warn}
  - {rule: unique, columns: [id]}
  - {rule: in_range, column: n, min: 0, where: "item <> 'returned'"}
"""
IN_FOLDERS = """format: parquet
availability_flag: _SUCCESS
locations: {data: "/sälés of x/${YEAR}-${MONTH}-${DAY}-${HOUR}"}"""
IN_TABLE = 'table: {uri: "catalog:default:NAME#ds=${YEAR}-${MONTH}-${DAY}-${HOUR};region=*"}'
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
Rows: TypeAlias = Mapping[str, list[Any]]
GOOD: Rows = {"id": [1, 2, 3], "item": ["ä", "b'", "c"], "n": [0.5, 2.0, 9.0], "at": [NOON, NOON, NOON]}
MORE: Rows = {"id": [4], "item": ["d"], "n": [1.25], "at": [NOON.replace(minute=7)]}
BAD: Rows = {"id": [1, 1, 3], "item": [None, "b", "returned"], "n": [-0.5, 2.0, -9.0], "at": [None, NOON, NOON]}
Land: TypeAlias = Callable[[int, Rows, Rows], None]
"""An hour is there in two files, or regions, in place of what was there."""


@dataclass(frozen=True)
class Stored:
    """A feed on a store, and other programs that write and read its instances."""

    cluster: str
    storage: str
    land: Land
    read: Callable[[int], pa.Table]


def parquet(rows: Rows) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(dict(rows), SCHEMA), written)
    return written.getvalue()


def hour_of(hour: int) -> str:
    return f"2013-01-01-{hour:02}"


def on_s3(request: pytest.FixtureRequest, execute: str = "local[2]") -> Stored:
    url = request.getfixturevalue("lake_url")
    s3 = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    folder = f"data/{uuid.uuid4().hex}"
    declared = lake(url, "primary", execute=execute)
    declared["interfaces"]["write"]["endpoint"] = f"s3://lake/{folder}"

    def prefix(hour: int) -> str:
        return f"{folder}/sälés of x/{hour_of(hour)}"

    def land(hour: int, *parts: Rows) -> None:
        for number, rows in enumerate(parts):
            s3.put_object(Bucket="lake", Key=f"{prefix(hour)}/part-{number}.parquet", Body=parquet(rows))
        s3.put_object(Bucket="lake", Key=f"{prefix(hour)}/_SUCCESS", Body=b"")

    def read(hour: int) -> pa.Table:
        listed = s3.list_objects_v2(Bucket="lake", Prefix=prefix(hour))["Contents"]
        keys = [one["Key"] for one in listed if one["Key"].endswith(".parquet")]
        bodies = [s3.get_object(Bucket="lake", Key=key)["Body"].read() for key in keys]
        return pa.concat_tables(pq.read_table(io.BytesIO(body)) for body in bodies)

    properties = SPARK if execute == "local[2]" else {}
    return Stored(cluster_yaml(**declared, properties=properties), IN_FOLDERS, land, read)


def on_connect(request: pytest.FixtureRequest) -> Stored:
    return on_s3(request, request.getfixturevalue("connect_cluster").interfaces.execute.endpoint)


def in_hdfs(request: pytest.FixtureRequest) -> Stored:
    hdfs: Hdfs = request.getfixturevalue("hdfs")
    local: Path = request.getfixturevalue("tmp_path")
    root = uuid.uuid4().hex
    there = f"/{root}/sälés of x"

    def land(hour: int, *parts: Rows) -> None:
        folder = local / "written" / hour_of(hour)
        folder.mkdir(parents=True, exist_ok=True)
        for number, rows in enumerate(parts):
            (folder / f"part-{number}.parquet").write_bytes(parquet(rows))
        (folder / "_SUCCESS").touch()
        hdfs.dfs("-mkdir", "-p", there)
        hdfs.dfs("-put", "-f", str(folder), there)

    def read(hour: int) -> pa.Table:
        (local / "read").mkdir(exist_ok=True)
        hdfs.dfs("-get", "-f", f"{there}/{hour_of(hour)}", str(local / "read"))
        return pa.concat_tables(map(pq.read_table, sorted((local / "read" / hour_of(hour)).glob("*.parquet"))))

    return Stored(cluster_yaml(**on_hdfs(hdfs, root=root), properties=SPARK), IN_FOLDERS, land, read)


def in_table(request: pytest.FixtureRequest, kind: str) -> Stored:
    endpoint, local = endpoint_of(request, kind), request.getfixturevalue("tmp_path")
    tables = Tables(endpoint, local)
    tables.make(columns=SCHEMA)
    interfaces = {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[2]"}}
    cluster = cluster_yaml(interfaces={**interfaces, "registry": registry_of(endpoint)}, properties=SPARK)

    def land_in_hive(hour: int, *parts: Rows) -> None:
        for region, rows in zip(("EU", "US"), parts, strict=True):
            folder = local / uuid.uuid4().hex
            folder.mkdir()
            (folder / "part-0.parquet").write_bytes(parquet(rows))
            values = (hour_of(hour), region)
            tables.catalog.switch("default", tables.name, values, folder.as_uri(), {}, tables.there(*values))

    def read_hive(hour: int) -> pa.Table:
        found = [tables.there(hour_of(hour), region) for region in ("EU", "US")]
        places = [place.removeprefix("file://") for one in found if one for place in one.places]
        return pa.concat_tables(pq.read_table(place, partitioning=None) for place in places)

    def land_in_iceberg(hour: int, *parts: Rows) -> None:
        table = tables.catalog._catalog.load_table(("default", tables.name))  # type: ignore[attr-defined]
        regions = zip(("EU", "US"), parts, strict=True)
        rows = [
            pa.table(dict(rows), SCHEMA)
            .append_column("ds", [[hour_of(hour)] * len(rows["id"])])
            .append_column("region", [[region] * len(rows["id"])])
            for region, rows in regions
        ]
        table.overwrite(pa.concat_tables(rows).cast(table.schema().as_arrow()), EqualTo("ds", hour_of(hour)))

    def read_iceberg(hour: int) -> pa.Table:
        table = tables.catalog._catalog.load_table(("default", tables.name))  # type: ignore[attr-defined]
        return table.scan(EqualTo("ds", hour_of(hour))).to_arrow()

    land, read = (land_in_hive, read_hive) if kind == "hive" else (land_in_iceberg, read_iceberg)
    return Stored(cluster, IN_TABLE.replace("NAME", tables.name), land, read)


STORES: Mapping[str, Callable[[pytest.FixtureRequest], Stored]] = {
    "s3": on_s3,
    "s3 with connect": on_connect,
    "hdfs": in_hdfs,
    "hive": lambda request: in_table(request, "hive"),
    "iceberg": lambda request: in_table(request, "iceberg"),
}
IN_SOAK = [pytest.param(one, marks=pytest.mark.soak) for one in ("s3 with connect", "hdfs", "hive")]


def is_as_read(found: VerdictRow | None, rows: pa.Table) -> None:
    """The verdict, all figures of the checks, and the profile are those of these rows."""
    assert found is not None
    ids, items, numbers = (rows[name] for name in ("id", "item", "n"))
    sold = pc.and_(pc.less(numbers, 0), pc.fill_null(pc.not_equal(items, "returned"), fill_value=False))
    violations = {
        "enough": 0 if len(rows) >= 2 else 1,
        "not_null_item": items.null_count,
        "unique_id": len(ids) - ids.null_count - pc.count_distinct(ids, mode="only_valid").as_py(),
        "in_range_n": pc.sum(sold).as_py() or 0,
    }
    assert found.records == len(rows)
    assert {one.name: one.passed for one in found.checks} == {name: n == 0 for name, n in violations.items()}
    counted = {one.name: one.figures["violations"] for one in found.checks if one.name != "enough"}
    assert counted == {name: n for name, n in violations.items() if name != "enough"}
    is_valid = not (violations["enough"] or violations["unique_id"] or violations["in_range_n"])
    assert found.verdict is (InstanceVerdict.VALID if is_valid else InstanceVerdict.INVALID)
    profile = {one.name: one for one in found.profile or ()}
    for name in SCHEMA.names:
        least, most = (pc.min_max(rows[name]).as_py()[end] for end in ("min", "max"))
        if name == "at":
            least, most = (value.isoformat() for value in (least, most))
        told = profile[name]
        assert (told.nulls, told.min, told.max) == (rows[name].null_count, least, most), name
        assert told.distinct == pc.count_distinct(rows[name], mode="only_valid").as_py(), name
    for name in ("id", "n"):
        assert profile[name].mean == pytest.approx(pc.mean(rows[name]).as_py()), name


@pytest.mark.parametrize("kind", ["s3", "iceberg", *IN_SOAK])
def test_a_verdict_is_about_what_others_read_there(
    kind: str,
    open_at: OpenAt,
    write_entities: Callable[[dict[str, str]], Path],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    stored = STORES[kind](request)
    write_entities({"all.yaml": stored.cluster + FEED.replace("STORAGE", stored.storage)})

    def landed(installation: Installation, hour: int, *parts: Rows) -> None:
        stored.land(hour, *parts)  # type: ignore[arg-type]  # two
        collect_instances(installation, "sales", at(hour), at(hour))

    with open_at("2013-01-01T12:00Z") as installation:
        anew(installation)
        landed(installation, 1, GOOD, MORE)
        landed(installation, 2, BAD, MORE)
        assert checking(installation).run(installation.ledger) == (2, [])
        good, bad = (verdict(installation, hour) for hour in (1, 2))
        is_as_read(good, stored.read(1))
        is_as_read(bad, stored.read(2))
        assert good and bad and (good.records, good.is_valid, bad.is_valid) == (4, True, False)
        landed(installation, 2, MORE, {name: values[:2] for name, values in GOOD.items()})
        assert checking(installation).run(installation.ledger) == (1, [])
        corrected = verdict(installation, 2)
        is_as_read(corrected, stored.read(2))
        assert corrected and corrected.is_valid and corrected.version != bad.version
        assert checking(installation).run(installation.ledger) == (0, [])
