"""What was captured, held against what is declared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.captured import Captured, DataRead, DataWrite, parse_captured
from falcon_assets.planning.data_usage import DeclaredData, DeclaredInput, FoundInstance, Usage, normal_place, usage
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns

T = parse_instant("2013-01-01T05:00Z")
OUT = "file:///data/.falcon/staging/x/out"
DECLARED = DeclaredData(
    {"rows": DeclaredInput("raw", ("file:///data/raw/05",)), "more": DeclaredInput("extra", ())},
    {"out": OUT},
    ["file:///data/.falcon/staging", "/data/.falcon/working"],
)
WROTE = DataWrite((), path="file:/data/.falcon/staging/x/out")


NAMES = FoundInstance("names", T)


def find(place: str) -> FoundInstance | None:
    return NAMES if place.startswith("/data/names/05") else None


def read(*paths: str, root: str | None = None, is_complete: bool = True) -> DataRead:
    return DataRead((root or paths[0],), paths if is_complete else (), is_complete)


def used(*reads: DataRead, **more: Any) -> Usage:
    return usage(Captured(reads, **{"writes": (WROTE,), **more}), DECLARED, find)


RAW = read("file:/data/raw/05")


@pytest.mark.parametrize(
    ("reads", "undeclared", "places"),
    [
        pytest.param((RAW,), (), (), id="its input"),
        pytest.param((read("file:/data/raw/05/carrier=aa", root="file:/data/raw/05"),), (), (), id="a part of it"),
        pytest.param((RAW, read("file:/data/names/05/x")), (NAMES,), (), id="another feed"),
        pytest.param((RAW, read("file:/data/names/05", is_complete=False)), (NAMES,), (), id="by its root"),
        pytest.param((RAW, read("file:/data/raw/06")), (), ("/data/raw/06",), id="no feed"),
        pytest.param((RAW, read("file:/data/raw/051")), (), ("/data/raw/051",), id="begins alike"),
        pytest.param((RAW, read("s3a://b/x/"), read("s3://b/x")), (), ("s3://b/x",), id="one place in two spellings"),
        pytest.param((RAW, read("file:/data/.falcon/staging/x/out")), (), (), id="its own output"),
        pytest.param((RAW, read("file:/data/.falcon/working/y")), (), (), id="its scratch space"),
        pytest.param(
            (RAW, read("/all", is_complete=False), read("/all/us", root="/all")), (), ("/all/us",), id="what was pruned"
        ),
        pytest.param((RAW, DataRead(("/all",), (), True)), (), (), id="nothing was left after pruning"),
    ],
)
def test_reads(reads: tuple[DataRead, ...], undeclared: tuple[FoundInstance, ...], places: tuple[str, ...]) -> None:
    found = used(*reads)
    assert (found.undeclared, found.places, found.written, found.not_read) == (undeclared, places, (), ())


@pytest.mark.parametrize(
    ("captured", "not_read"),
    [
        pytest.param(Captured((), (WROTE,)), ("rows",), id="not read"),
        pytest.param(Captured((read("/data", is_complete=False),), (WROTE,)), (), id="read from above"),
        pytest.param(Captured((read("/data/other", root="/data"),), (WROTE,)), ("rows",), id="only what is beside it"),
        pytest.param(Captured((), (WROTE,), unknown=("reads an RDD",)), (), id="what nobody can follow"),
        pytest.param(Captured((), (WROTE,), problem="lost"), (), id="not all is known"),
        pytest.param(Captured(()), (), id="nothing is known"),
    ],
)
def test_inputs_that_are_not_read(captured: Captured, not_read: tuple[str, ...]) -> None:
    assert usage(captured, DECLARED, find).not_read == not_read


def test_what_was_not_seen_is_not_known() -> None:
    assert usage(Captured(()), DECLARED, find).problem == "nobody saw how output out was written"
    assert used(problem="lost").problem == "lost"
    assert usage(Captured(()), DeclaredData({}, {}, []), find).problem == ""
    assert (used(RAW).capture, used(problem="lost").capture) == ("complete", "none: lost")
    assert used(RAW, unknown=("reads x", "writes y")).capture == "partly: reads x; writes y"


def test_writes() -> None:
    others = (
        DataWrite((), path="file:/data/aside"),
        DataWrite((), path=None, source="org.jdbc.Table"),
        DataWrite((), path="/data/.falcon/working/t"),
    )
    assert used(RAW, writes=(WROTE, *others)).written == ("/data/aside", "org.jdbc.Table")


def test_it_says_so_in_words_and_not_too_many() -> None:
    found = used(
        read("file:/data/names/05"),
        *(read(f"/x/{number}") for number in range(9)),
        writes=(WROTE, DataWrite((), path="/y")),
    )
    assert found.warnings == [
        "reads names 2013-01-01T05:00Z, which is no input",
        *(f"reads /x/{number}, which is of no feed" for number in range(4)),
        "... and 6 more like that",
        "does not read its input rows",
    ]
    assert found.breaches[-1] == "writes /y, which is no output"


def test_columns_come_from_feeds_or_places() -> None:
    columns = (
        OutputColumn("a", "int", ((("file:/data/raw/05",), "x"), (("file:/data/raw/05/p=1",), "x")), False),
        OutputColumn("b", "string", ((("file:/data/names/05",), "y"), (("/z",), "w")), True),
    )
    rows = ((("/z",), "k"), (("file:/data/raw/05",), "x"))
    found = used(RAW, writes=(DataWrite(columns, path="file:/other"), DataWrite(columns, rows, path=WROTE.path)))
    assert found.columns == {
        "out": OutputColumns(
            (
                OutputColumn("a", "int", (("raw", "x"),), False),
                OutputColumn("b", "string", (("/z", "w"), ("names", "y")), True),
            ),
            (("/z", "k"), ("raw", "x")),
        )
    }


OVER = DataWrite(
    (OutputColumn("one", "int", ((("file:/data/raw/05",), "x"),), False),), path="file:/data/.falcon/working/w"
)
"""What it wrote into its scratch space, from ``raw``."""


def read_again(*writes: DataWrite, root: str = "file:/data/.falcon/working/w") -> OutputColumns:
    """The columns of an output that was made from what lies in the scratch space."""
    again = (OutputColumn("two", "int", (((root,), "one"),), False),)
    made = DataWrite(again, path=WROTE.path, roots=((root,),))
    return used(RAW, writes=(*writes, made)).columns["out"]


def test_what_went_through_its_scratch_space_comes_from_what_was_written_there() -> None:
    (column,) = read_again(OVER).each
    assert (column.inputs, column.is_opaque) == ((("raw", "x"),), False)


def test_what_was_in_its_scratch_space_before_may_come_from_anything() -> None:
    (column,) = read_again().each
    assert (column.inputs, column.is_opaque) == ((("/data/.falcon/working/w", "one"),), True)
    (column,) = read_again(replace(OVER, is_append=True)).each
    assert (column.inputs, column.is_opaque) == ((("raw", "x"),), True)


def test_what_decided_the_rows_on_the_way_decides_them_still() -> None:
    columns = read_again(replace(OVER, rows_from=((("file:/data/raw/05",), "k"),), are_rows_opaque=True))
    assert (columns.rows_from, columns.are_rows_opaque) == ((("raw", "k"),), True)


def test_what_it_wrote_beside_its_feeds_and_read_again_comes_from_both() -> None:
    (column,) = read_again(replace(OVER, path="/aside"), root="file:/aside").each
    assert column.inputs == (("/aside", "one"), ("raw", "x"))


def test_all_that_was_appended_to_an_output_counts() -> None:
    first = DataWrite((OutputColumn("a", "int", ((("/data/raw/05",), "x"),), False),), path=WROTE.path)
    second = DataWrite((OutputColumn("A", "int", ((("/z",), "y"),), True),), path=WROTE.path, is_append=True)
    (column, *_) = used(RAW, writes=(first, second)).columns["out"].each
    assert (column.name, column.inputs, column.is_opaque) == ("a", (("/z", "y"), ("raw", "x")), True)


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ("IDENTITY", "IDENTITY", "IDENTITY"),
        ("AGGREGATION", "IDENTITY", "AGGREGATION"),
        ("TRANSFORMATION", "AGGREGATION", "AGGREGATION"),
        ("WINDOW", "AGGREGATION", "WINDOW"),
        ("IDENTITY", "CONDITIONAL", "CONDITIONAL"),
    ],
)
def test_ways_go_through_the_scratch_space(before: str, after: str, how: str) -> None:
    first = (replace(OVER.each[0], how=((before,),)),)
    again = (OutputColumn("two", "int", ((("file:/data/.falcon/working/w",), "one"),), False, ((after,),)),)
    made = DataWrite(again, path=WROTE.path)
    (column,) = used(RAW, writes=(replace(OVER, each=first), made)).columns["out"].each
    assert (column.inputs, column.how) == ((("raw", "x"),), ((how,),))


def test_every_root_of_a_read_counts() -> None:
    both = (("file:/data/raw/05", "file:/data/names/05"), "x")
    write = DataWrite((OutputColumn("a", "int", (both,), False),), path=WROTE.path)
    (column,) = used(RAW, writes=(write,)).columns["out"].each
    assert column.inputs == (("names", "x"), ("raw", "x"))


def test_files_below_a_root_are_those_of_their_feeds() -> None:
    found = DataRead(("/data",), ("/data/names/05", "/data/raw/05/deep"), True)
    write = DataWrite((OutputColumn("a", "int", ((("/data",), "x"),), False),), path=WROTE.path)
    (column,) = used(found, writes=(write,)).columns["out"].each
    assert column.inputs == (("names", "x"), ("raw", "x"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"isComplete": true, "reads": [1]}', "null"])
def test_what_the_listener_does_not_say(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_captured(text)


@given(st.text(alphabet="ab/: ", max_size=8))
def test_a_place_has_one_spelling(path: str) -> None:
    once = normal_place(f"file:///{path}")
    assert normal_place(once) == once == normal_place(f"file:/{path}")
