"""What Spark reads after compaction is what it read before, with the same types."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from falcon_assets.features.compaction.engine import CompactionPlan, NewFiles, compact
from falcon_assets.features.compaction.row_files import DataFile

COLUMNS = {
    "id": "id",
    "at": "timestamp'2024-03-10 02:30:00' + make_interval(0, 0, 0, 0, id)",
    "plain": "timestamp_ntz'2024-07-01 12:00:00'",
    "day": "date'1969-12-31' - int(id)",
    "price": "cast(id / 3 as decimal(20,4))",
    "text": "if(id % 3 = 0, null, concat('ü', id))",
    "odd": "if(id % 2 = 0, double('nan'), double('-0.0'))",
    "code": "cast(id as char(5))",
    "counts": "map('k', id, 'j', null)",
    "nested": "named_struct('a', array(id, null), 'b', struct(cast(id as string) c))",
    "raw": "binary(concat('x', id))",
}
FLAT = [name for name in COLUMNS if name not in ("counts", "nested", "raw")]
SCHEMA = (
    "id bigint, at timestamp, plain timestamp_ntz, day date, price decimal(20,4), text string, odd double, code string"
)
FORMATS = {"parquet": list(COLUMNS), "orc": list(COLUMNS), "json": [*FLAT, "counts", "nested"], "csv": FLAT}


@pytest.fixture(params=["UTC", "America/New_York"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    zone = spark.conf.get("spark.sql.session.timeZone")
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", zone or "UTC"))
    spark.conf.set("spark.sql.session.timeZone", request.param)
    return spark


def told(rows: DataFrame) -> list[str]:
    """Each row as JSON, which can compare maps and NaN."""
    return sorted(one[0] for one in rows.selectExpr("to_json(struct(*))").collect())


@pytest.mark.parametrize("form", FORMATS)
def test_spark_reads_the_same(session: SparkSession, tmp_path: Path, form: str) -> None:
    source, target, spill = (tmp_path / name for name in ("source", "target", "spill"))
    options = {"header": "true"} if form == "csv" else {}
    chosen = ", ".join(f"{COLUMNS[name]} AS {name}" for name in FORMATS[form])
    rows = session.sql(f"SELECT {chosen} FROM range(0, 40, 1, 4)")
    rows.write.format(form).options(**options).save(str(source))
    target.mkdir()
    spill.mkdir()
    paths = [path for path in source.iterdir() if not path.name.startswith(("_", "."))]
    files = [DataFile(path.name, path.stat().st_size, partial(path.open, "rb")) for path in paths]
    place = NewFiles(lambda name: (target / name).open("wb"), lambda name: (target / name).open("rb"))
    done = compact(files, CompactionPlan(form, ["text", "id"], 1 << 20, options, SCHEMA), place, spill)
    assert (done.files_before, len(done.files), done.content.rows) == (4, 1, 40)
    reader = session.read.format(form).options(**options)
    before, after = reader.load(str(source)), reader.load(str(target))
    assert after.schema == before.schema
    assert told(after) == told(before)
    found = after.select("text", "id").collect()
    assert [(one[0] is not None, one[0] or "", int(one[1])) for one in found] == sorted(
        (one[0] is not None, one[0] or "", int(one[1])) for one in found
    )
