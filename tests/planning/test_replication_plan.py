from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.executor import ExecuteInterface
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.copying.copy_plan import (
    FILE_BYTES,
    TASK_BYTES,
    CopyPlan,
    CopyRecord,
    FileStep,
    ListedFile,
    Step,
    balanced,
    plan_copy,
)

PLAIN = ReplicationOptions()
FILE = ListedFile(10, "m")
COPIED = CopyRecord("a", 10, "m", "t", "sum")


def everything(name: str) -> bool:
    return True


def plan(
    source: dict[str, ListedFile],
    target: dict[str, ListedFile] | None = None,
    recorded: dict[str, CopyRecord] | None = None,
    staged: dict[str, CopyRecord] | None = None,
    options: ReplicationOptions = PLAIN,
) -> CopyPlan:
    return plan_copy(source, target or {}, recorded or {}, staged or {}, everything, options)


def step(made: CopyPlan) -> str:
    (file,) = [file for task in made.tasks for file in task] or [None]
    return file.step.value if file else "equal"


TARGET = {"a": ListedFile(10, "t")}
CASES = {
    "a new file": ({}, {}, {}, {}, "copy"),
    "another size": ({"a": ListedFile(9, "t")}, {"a": COPIED}, {}, {}, "copy"),
    "the same, as recorded": (TARGET, {"a": COPIED}, {}, {}, "equal"),
    "nothing recorded": (TARGET, {}, {}, {}, "compare"),
    "the source was written anew": (TARGET, {"a": COPIED._replace(source_version="before")}, {}, {}, "compare"),
    "the target was written anew": (TARGET, {"a": COPIED._replace(target_version="before")}, {}, {}, "compare"),
    "an earlier attempt left it": ({}, {}, {"a": COPIED}, {}, "check"),
    "an earlier attempt left it before the source changed": (
        {},
        {},
        {"a": COPIED._replace(source_version="b")},
        {},
        "copy",
    ),
    "sizes alone": (TARGET, {}, {}, {"skip_checksum": True}, "equal"),
    "sizes alone, and they differ": ({"a": ListedFile(9, "t")}, {}, {}, {"skip_checksum": True}, "copy"),
    "overwrite": (TARGET, {"a": COPIED}, {}, {"overwrite": True}, "copy"),
    "overwrite, an earlier attempt left it": (TARGET, {}, {"a": COPIED}, {"overwrite": True}, "check"),
}


@pytest.mark.parametrize(("target", "recorded", "staged", "options", "expected"), CASES.values(), ids=CASES)
def test_what_happens_to_a_file(
    target: dict[str, ListedFile],
    recorded: dict[str, CopyRecord],
    staged: dict[str, CopyRecord],
    options: dict[str, bool],
    expected: str,
) -> None:
    made = plan({"a": FILE}, target, recorded, staged, replace(PLAIN, **options))
    assert step(made) == expected
    assert made.is_done == (expected == "equal")
    assert made.equal == (("a",) if expected == "equal" else ())


def test_empty_files_are_equal() -> None:
    assert step(plan({"a": ListedFile(0, "m")}, {"a": ListedFile(0, "t")})) == "equal"


def test_deleted_files() -> None:
    target = {"a": ListedFile(10, "t"), "b": FILE, "US/c": FILE}
    made = plan({"a": FILE}, target)
    assert (made.delete, made.keep) == (("US/c", "b"), ())
    made = plan({"a": FILE}, target, options=replace(PLAIN, remove_deleted_files=False))
    assert (made.delete, made.keep) == ((), ("b", "US/c"))


def test_files_of_other_sources_stay() -> None:
    source = {"US/a": FILE, "DE/b": FILE}
    target = {"US/old": FILE, "DE/x": FILE}
    made = plan_copy(source, target, {}, {}, lambda name: name.startswith("US/"), PLAIN)
    assert [[file.name for file in task] for task in made.tasks] == [["US/a"]]
    assert (made.delete, made.keep) == (("US/old",), ("DE/x",))


def test_balance_is_by_bytes_and_not_by_count() -> None:
    huge = [FileStep(Step.COPY, "huge", 10 * TASK_BYTES, "m")]
    small = [FileStep(Step.COPY, f"small-{number}", TASK_BYTES // 50, "m") for number in range(400)]
    tasks = balanced([*small, *huge], 2)
    assert sorted(len(task) for task in tasks) == [1, 400]


def test_small_copies_have_one_task() -> None:
    assert len(balanced([FileStep(Step.COPY, str(number), 1000, "m") for number in range(100)], 20)) == 1
    assert balanced([], 20) == ()


@pytest.mark.parametrize(
    ("endpoint", "most", "tasks"),
    [
        ("local", 20, 1),
        ("local[2]", 20, 2),
        ("local[2]", 1, 1),
        ("local[*]", 20, 4),
        ("local[64]", 20, 8),
        ("spark://host:7077", 20, 8),
        ("sc://host:15002", 3, 3),
    ],
)
def test_no_more_tasks_than_run_side_by_side(endpoint: str, most: int, tasks: int) -> None:
    at_once = ExecuteInterface(endpoint=endpoint).tasks_at_once(cores=4)
    source = {str(number): ListedFile(TASK_BYTES, "m") for number in range(8)}
    made = plan_copy(source, {}, {}, {}, everything, ReplicationOptions(max_maps=most), at_once)
    assert len(made.tasks) == tasks


SIZES = st.lists(st.one_of(st.just(0), st.integers(0, 4 * TASK_BYTES)), max_size=60)


@given(sizes=SIZES, most=st.integers(1, 30))
def test_tasks_have_every_file_once_and_about_as_many_bytes(sizes: list[int], most: int) -> None:
    steps = [FileStep(Step.COPY, str(number), size, "m") for number, size in enumerate(sizes)]
    tasks = balanced(steps, most)
    assert sorted(step for task in tasks for step in task) == sorted(steps)
    assert len(tasks) <= most
    assert all(tasks)
    loads = [sum(step.size + FILE_BYTES for step in task) for task in tasks]
    if loads:
        assert max(loads) - min(loads) <= max(sizes) + FILE_BYTES
        assert len(tasks) <= max(1, 0.5 + sum(loads) / TASK_BYTES)


NAMES = st.sampled_from(["a", "b", "c", "d/e"])
LISTED = st.dictionaries(NAMES, st.builds(ListedFile, st.integers(0, 3), st.sampled_from(["m", "n"])))
RECORDS = st.dictionaries(
    NAMES, st.builds(CopyRecord, st.just(""), st.integers(0, 3), *[st.sampled_from(["m", "n"])] * 2, st.just("s"))
)
FLAGS = st.booleans()


@given(LISTED, LISTED, RECORDS, RECORDS, FLAGS, FLAGS, FLAGS)
def test_the_target_becomes_like_the_source(
    source: dict[str, ListedFile],
    target: dict[str, ListedFile],
    recorded: dict[str, CopyRecord],
    staged: dict[str, CopyRecord],
    overwrite: bool,
    skip: bool,
    remove: bool,
) -> None:
    options = replace(PLAIN, overwrite=overwrite, skip_checksum=skip, remove_deleted_files=remove)
    made = plan(source, target, recorded, staged, options)
    steps = {file.name: file.step for task in made.tasks for file in task}
    assert steps.keys() | set(made.equal) == source.keys()
    assert not steps.keys() & set(made.equal)
    assert set(made.equal) <= target.keys()
    assert all(target[name].size == source[name].size for name in made.equal)
    assert {name for name, what in steps.items() if what is Step.COMPARE} <= target.keys()
    assert {name for name, what in steps.items() if what is Step.CHECK} <= staged.keys()
    assert {*made.delete, *made.keep} == target.keys() - source.keys()
    assert not (made.keep if remove else made.delete)
