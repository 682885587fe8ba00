"""Compaction of files: the same rows, sorted, with the columns of all files; checked with plain pyarrow."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falcon_assets.errors import StorageError
from falcon_assets.features.compaction.engine import CompactedFiles, CompactionPlan, NewFiles, compact
from falcon_assets.features.compaction.row_digest import RowDigest
from falcon_assets.features.compaction.row_files import DataFile
from falcon_assets.features.compaction.sorting import ExternalSort

MB = 1 << 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def compacted(source: Path, form: str = "parquet", *sort: str, **more: Any) -> tuple[Path, CompactedFiles]:
    target, spill = source.parent / "target", source.parent / "spill"
    target.mkdir()
    spill.mkdir()
    paths = [path for path in source.rglob("*") if path.is_file()]
    files = [DataFile(str(one.relative_to(source)), one.stat().st_size, partial(one.open, "rb")) for one in paths]

    def create(name: str) -> Any:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        return (target / name).open("wb")

    place = NewFiles(create, lambda name: (target / name).open("rb"))
    done = compact(files, CompactionPlan(form, sort, more.pop("file_bytes", MB), **more), place, spill)
    assert not list(spill.iterdir())
    return target, done


def only_file(folder: Path) -> Path:
    (found,) = (path for path in folder.rglob("*") if path.is_file())
    return found


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def write(folder: Path, **files: dict[str, Any] | pa.Table) -> None:
    for name, content in files.items():
        pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), folder / f"{name}.parquet")


def test_rows_of_many_files_are_sorted_in_one(source: Path) -> None:
    write(source, a={"id": [5, 1, 9]}, b={"id": [3, None]}, c={"id": pa.array([], pa.int64())})
    target, done = compacted(source, "parquet", "id")
    assert pq.read_table(only_file(target))["id"].to_pylist() == [None, 1, 3, 5, 9]
    assert (done.files_before, len(done.files), done.content.rows) == (3, 1, 5)


def test_a_column_that_only_some_files_have_is_kept_and_types_are_widened(source: Path) -> None:
    old = {"id": pa.array([2], pa.int32()), "price": pa.array([Decimal("1.5")], pa.decimal128(3, 1))}
    new = {"ID": pa.array([1], pa.int64()), "price": pa.array([Decimal("22.25")], pa.decimal128(6, 2)), "more": [["x"]]}
    write(source, a=old, b=new)
    target, _ = compacted(source, "parquet", "Id")
    found = pq.read_table(only_file(target))
    assert found.schema.names == ["id", "price", "more"]
    assert found.to_pylist() == [
        {"id": 1, "price": Decimal("22.25"), "more": ["x"]},
        {"id": 2, "price": Decimal("1.50"), "more": None},
    ]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        pytest.param(
            {"x": [1]},
            {"x": ["1"]},
            "column 'x' is int64 in a.parquet and string in b.parquet: no type holds both without loss",
            id="text-and-number",
        ),
        pytest.param(
            {"x": [1]},
            {"x": [1.5]},
            "column 'x' is int64 in a.parquet and double in b.parquet: no type holds both without loss",
            id="number-that-would-be-rounded",
        ),
        pytest.param(
            {"x": pa.array([0], pa.timestamp("us"))},
            {"x": pa.array([0], pa.timestamp("us", "UTC"))},
            "column 'x' is timestamp[us] in a.parquet and timestamp[us, tz=UTC] in b.parquet: "
            "no type holds both without loss",
            id="times-with-and-without-zone",
        ),
    ],
)
def test_types_that_no_type_holds_are_refused(source: Path, one: Any, other: Any, said: str) -> None:
    write(source, a=one, b=other)
    with pytest.raises(StorageError) as refused:
        compacted(source)
    assert str(refused.value) == said


def test_columns_of_one_file_that_differ_in_case_only_are_refused(source: Path) -> None:
    write(source, a={"x": [1], "X": [2]})
    with pytest.raises(StorageError, match=r"a.parquet has several columns of the name 'x', whatever their case"):
        compacted(source)


def test_what_is_no_file_of_the_format_is_named(source: Path) -> None:
    (source / "a.parquet").write_text("no Parquet at all")
    with pytest.raises(StorageError, match=r"a.parquet cannot be read as parquet"):
        compacted(source)


@pytest.mark.parametrize(("sort", "said"), [("y", "there is no column 'y' to sort by; there is: x"), ("x", "no order")])
def test_columns_without_order_are_refused(source: Path, sort: str, said: str) -> None:
    write(source, a={"x": [[1]]})
    with pytest.raises(StorageError, match=said):
        compacted(source, "parquet", sort)


def odd_columns() -> pa.Table:
    zoned = pa.array([datetime(2024, 3, 31, 1, 30, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)])
    nested = [{"a": [1, None], "b": {"c": "ä"}}, None, {"a": None, "b": None}]
    return pa.table(
        {
            "number": [float("nan"), -0.0, None],
            "text": ["", None, "日本\x00"],
            "decimal": [Decimal("-1.10"), None, Decimal("99999999999999999999999999999999999.99")],
            "zoned": pa.array(zoned.to_pylist(), pa.timestamp("us", "UTC")),
            "plain": pa.array([0, None, -62135596800000000], pa.timestamp("us")),
            "day": [date(1, 1, 1), date(9999, 12, 31), None],
            "nested": pa.array(
                nested, pa.struct([("a", pa.list_(pa.int64())), ("b", pa.struct([("c", pa.string())]))])
            ),
            "map": pa.array([[("k", 1), ("j", None)], None, []], pa.map_(pa.string(), pa.int64())),
            "bytes": [b"\xff\x00", b"", None],
            "flag": [True, None, False],
            "nothing": pa.nulls(3),
            "word": pa.array(["x", "x", None]).dictionary_encode(),
        }
    )


@pytest.mark.parametrize(
    "sort", ["number", "text", "decimal", "zoned", "plain", "day", "bytes", "flag", "nothing", "word"]
)
def test_odd_values_stay_as_they_are(source: Path, sort: str) -> None:
    table = odd_columns()
    write(source, a=table.slice(0, 1), b=table.slice(1, 2))
    target, _ = compacted(source, "parquet", sort, memory=1)
    found = pq.read_table(only_file(target))
    assert rows_of(found) == rows_of(table)
    assert found.schema.field("zoned").type == pa.timestamp("us", "UTC")
    first = found[sort][0].as_py()
    assert first is None


def test_null_is_first_and_nan_last(source: Path) -> None:
    write(source, a={"x": [float("nan"), 1.0, None]}, b={"x": [float("-inf"), float("inf"), None]})
    target, _ = compacted(source, "parquet", "x")
    assert repr(pq.read_table(only_file(target))["x"].to_pylist()) == "[None, None, -inf, 1.0, inf, nan]"


def test_timestamps_of_sparks_old_kind_stay_instants(source: Path) -> None:
    old = pa.table({"at": pa.array([2, 1], pa.timestamp("us"))})
    pq.write_table(old, source / "a.parquet", use_deprecated_int96_timestamps=True)
    write(source, b={"at": pa.array([0], pa.timestamp("us", "UTC"))})
    target, _ = compacted(source, "parquet", "at")
    found = pq.read_table(only_file(target))
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    assert found["at"].cast(pa.int64()).to_pylist() == [0, 1, 2]


def test_dates_of_the_julian_calendar_are_refused(source: Path) -> None:
    old = pa.table({"x": [1]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    write(source, a=old)
    with pytest.raises(StorageError, match=r"a.parquet has dates of the Julian calendar"):
        compacted(source)


def test_the_codec_of_the_files_is_kept_and_what_spark_said_of_one_of_them_is_not(source: Path) -> None:
    table = pa.table({"x": [1]}).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": "{}"})
    pq.write_table(table, source / "a.parquet", compression="zstd")
    target, _ = compacted(source)
    found = pq.read_metadata(only_file(target))
    assert found.row_group(0).column(0).compression == "ZSTD"
    assert b"org.apache.spark.sql.parquet.row.metadata" not in (found.metadata or {})


def test_files_have_about_the_size_that_was_asked_for(source: Path) -> None:
    numbers = pa.array(range(400_000)).take(pa.array([(k * 7919) % 400_000 for k in range(400_000)]))
    write(source, a={"x": numbers.slice(0, 300_000)}, b={"x": numbers.slice(300_000)})
    target, done = compacted(source, "parquet", "x", file_bytes=MB // 2, memory=MB // 4)
    paths = sorted(target.iterdir())
    sizes = [path.stat().st_size for path in paths]
    assert len(done.files) == len(paths) > 3
    assert all(MB // 4 < size < MB for size in sizes[:-1])
    assert pa.concat_tables(map(pq.read_table, paths))["x"].to_pylist() == list(range(400_000))


def test_sub_partitions_stay_folders_and_their_names_are_no_columns_to_sort_by(source: Path) -> None:
    for name in ("carrier=AA", "carrier=UA"):
        (source / name).mkdir()
        write(source / name, a={"x": [2]}, b={"x": [1]})
    target, done = compacted(source, "parquet", "carrier", "x")
    assert sorted(path.name for path in target.iterdir()) == ["carrier=AA", "carrier=UA"]
    assert len(done.files) == 2
    found = ds.dataset(target, partitioning="hive").to_table().to_pylist()
    assert sorted((one["carrier"], one["x"]) for one in found) == [("AA", 1), ("AA", 2), ("UA", 1), ("UA", 2)]


def test_empty_files_are_left_out_and_files_without_rows_leave_their_columns(source: Path) -> None:
    write(source, a={"x": pa.array([], pa.int64())})
    (source / "b.parquet").touch()
    target, done = compacted(source, "parquet", "x")
    assert pq.read_schema(only_file(target)).names == ["x"]
    assert (done.files_before, done.content.rows) == (2, 0)


def test_orc_files_are_sorted_with_the_columns_of_all(source: Path) -> None:
    table = odd_columns().drop_columns(["nothing", "word", "plain"])
    own_times = pa.array([1711848600000000, None, 0], pa.timestamp("us", "UTC"))  # ORC's end in 2262 here
    table = table.set_column(3, "zoned", own_times)
    orc.write_table(table.slice(0, 2), source / "a.orc")
    orc.write_table(table.slice(2).drop_columns(["flag"]), source / "b.orc")
    target, _ = compacted(source, "orc", "text")
    found = orc.read_table(only_file(target))
    expected = [*table.slice(0, 2).to_pylist(), {**table.slice(2).to_pylist()[0], "flag": None}]
    assert Counter(map(_normal, found.to_pylist())) == Counter(map(_normal, expected))
    assert found["text"].to_pylist() == [None, "", "日本\x00"]


def _normal(row: dict[str, Any]) -> str:
    return repr({name: str(value) if name == "zoned" else value for name, value in sorted(row.items())})


def test_lines_of_json_stay_as_they_are_and_are_sorted_by_the_type_of_the_schema(source: Path) -> None:
    lines = [
        '{"id": 10, "x": 1.0}',
        '{"x": {"y": [1]}, "id": 9}',
        "no JSON",
        '{"id": null}',
        '{"id": 9.0e0, "new": "ü"}',
    ]
    (source / "a.json").write_text("\n".join(lines[:3]) + "\n\n")
    (source / "b.json").write_text("\r\n".join(lines[3:]))
    target, done = compacted(source, "json", "id", schema="id bigint, x string")
    assert only_file(target).read_text().splitlines() == [lines[2], lines[3], lines[1], lines[4], lines[0]]
    assert done.content.rows == 5


def test_csv_keeps_its_header_its_quotes_and_its_compression(source: Path) -> None:
    for name, rows in {"a": ['"x;1";10', "y;9"], "b": ["z;", '"q""q";1']}.items():
        (source / f"{name}.csv.gz").write_bytes(gzip.compress("\n".join(["name;n", *rows, ""]).encode()))
    options = {"header": "true", "sep": ";"}
    target, _ = compacted(source, "csv", "n", options=options, schema="name string, n int")
    found = only_file(target)
    assert found.name.endswith(".csv.gz")
    assert gzip.decompress(found.read_bytes()).decode().splitlines() == ["name;n", "z;", '"q""q";1', "y;9", '"x;1";10']


def test_csv_files_with_other_headers_are_refused(source: Path) -> None:
    (source / "a.csv").write_text("x,y\n1,2\n")
    (source / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(StorageError, match=r"a.csv and b.csv have different headers"):
        compacted(source, "csv", options={"header": "true"})


def test_text_is_sorted_by_its_lines(source: Path) -> None:
    (source / "a.txt").write_text("b\n\na\n")
    (source / "b.txt").write_text("ab")
    target, _ = compacted(source, "text", "value")
    assert only_file(target).read_text() == "\na\nab\nb\n"


def test_other_compressions_are_refused(source: Path) -> None:
    (source / "a.json.lz4").write_text("{}")
    with pytest.raises(StorageError, match=r"a.json.lz4 is compressed as lz4, which is not supported"):
        compacted(source, "json")


def test_rows_that_are_written_otherwise_are_never_taken_for_the_same(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(source, a={"x": [1, 2], "y": [3, 4]})
    sound = ExternalSort.rows

    def swapped(self: ExternalSort) -> Any:
        for table in sound(self):
            yield table.set_column(1, "y", table["y"].take(pa.array([1, 0])))

    monkeypatch.setattr(ExternalSort, "rows", swapped)
    with pytest.raises(StorageError, match=r"the 2 rows that were written .* are not the 2 that were read"):
        compacted(source, "parquet", "x")


VALUES = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, float("nan")]))
ROWS = st.lists(st.tuples(VALUES, st.one_of(st.none(), st.text(max_size=9)), st.lists(st.integers(0, 3), max_size=3)))


def as_table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    kinds = {"number": pa.float64(), "text": pa.string(), "list": pa.list_(pa.int64())}
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table({name: pa.array(list(own), kinds[name]) for name, own in zip(kinds, columns, strict=True)})


@given(ROWS, st.randoms(), st.integers(1, 5))
def test_a_digest_is_that_of_the_rows_in_any_order_and_cut(rows: Any, random: Any, length: int) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    parts = [as_table(shuffled[start : start + length]) for start in range(0, len(rows), length)]
    whole = RowDigest().of([as_table(rows)])
    assert RowDigest().of(parts) == whole == RowDigest().of([pa.concat_tables([as_table([]), *parts])])
    sliced = pa.concat_tables([as_table([(1.0, "a", [1])]), as_table(rows)]).combine_chunks().slice(1)
    assert RowDigest().of([sliced]) == whole


@given(ROWS, ROWS)
def test_digests_differ_where_rows_do(rows: Any, others: Any) -> None:
    def bits(table: pa.Table) -> Counter[str]:
        return Counter(map(repr, table.to_pylist()))

    one, other = as_table(rows), as_table(others)
    if bits(one) != bits(other):
        assert RowDigest().of([one]) != RowDigest().of([other])


@settings(deadline=None)
@given(st.lists(ROWS, max_size=6), st.integers(1, 2000))
def test_sorting_in_files_is_sorting_in_memory(
    tmp_path_factory: pytest.TempPathFactory, parts: Any, budget: int
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    ordered = ExternalSort(["number", "text"], folder, budget)
    for rows in filter(None, parts):
        ordered.add(as_table(rows))
    found = [row for table in ordered.rows() for row in table.to_pylist()]
    assert Counter(map(repr, found)) == Counter(repr(row) for rows in parts for row in as_table(rows).to_pylist())
    keys = [_key(row) for row in found]
    assert keys == sorted(keys)
    assert not list(folder.iterdir())


def _key(row: dict[str, Any]) -> Any:
    number, text = row["number"], row["text"]
    order = (0, 0.0) if number is None else (2, 0.0) if number != number else (1, number)
    return (*order, text is not None, (text or "").encode())
