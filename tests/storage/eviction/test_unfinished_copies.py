"""What copies staged of instances that never came: it is found, and goes, and nothing else does."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_task import run_task
from falcon_assets.storage.eviction.unfinished_copies import UnfinishedCopy, remove_unfinished, unfinished_copies
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.staging import copies_folder, unfinished_note
from tests.copy_sandbox import FLAG, PATH, CopySandbox, some_files
from tests.processes import killed_before

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "shutil.rmtree", "fcntl.flock"}
"""Audit events of what changes a file system. Each is raised just *before* the system call."""
TWO = {"primary": "${cluster.name}", "second": "${cluster.name}"}


@pytest.fixture
def copies(tmp_path: Path) -> CopySandbox:
    sandbox = CopySandbox(tmp_path)
    sandbox.write(some_files())
    return sandbox


def break_off(copies: CopySandbox, source: str = "primary") -> None:
    """As a run does that is killed when its tasks are done."""
    with copies.copying(source=source) as copy:
        for number in range(len(copy.plan.tasks)):
            list(run_task(copy.job, number))


def staged(copies: CopySandbox) -> set[str]:
    """Every file in staging, but for the empty ones of locks, which go with their next holders."""
    found = Path(copies.store().staging).rglob("*")
    return {str(one.relative_to(copies.store().staging)) for one in found if one.is_file() and one.suffix != ".lock"}


def remove_all(copies: CopySandbox) -> list[bool]:
    outcomes = [remove_unfinished(copies.store(), one, FLAG) for one in unfinished_copies(copies.store())]
    kind_of(copies.store()).purge(0)
    return outcomes


def test_nothing_was_ever_copied(copies: CopySandbox) -> None:
    assert unfinished_copies(copies.store()) == []


def test_a_copy_is_unfinished_until_it_is_published(copies: CopySandbox) -> None:
    break_off(copies)
    assert unfinished_copies(copies.store()) == [UnfinishedCopy(PATH, ("primary",))]
    copies.copy()
    assert unfinished_copies(copies.store()) == [UnfinishedCopy(PATH, ("primary",))]
    copies.publish()
    assert unfinished_copies(copies.store()) == []
    assert not copies.replicate().to_publish
    assert unfinished_copies(copies.store()) == []


def test_what_was_staged_goes(copies: CopySandbox) -> None:
    break_off(copies)
    assert len(staged(copies)) > 5
    assert remove_all(copies) == [True]
    assert staged(copies) == set()
    assert not Path(copies_folder(copies.store(), PATH)).exists()
    assert remove_all(copies) == []
    copies.replicate()  # somebody runs it again after all
    assert copies.read() == copies.read("primary")


def test_all_sources_go_together(tmp_path: Path) -> None:
    copies = CopySandbox(tmp_path, sources=TWO)
    copies.write({"primary/a": b"1"})
    copies.write({"second/b": b"2", "second/c": b"3"}, "second")
    assert copies.bring("primary") is None
    break_off(copies, "second")
    assert unfinished_copies(copies.store()) == [UnfinishedCopy(PATH, ("primary", "second"))]
    with path_lock(f"{copies_folder(copies.store(), PATH)}/second.lock", 0), pytest.raises(StorageError) as refused:
        remove_all(copies)
    assert str(refused.value) == (
        f"cluster 'backup': cannot remove what was staged of {PATH}: it is being copied by a run; "
        "it goes when that has ended"
    )
    assert [name for name in staged(copies) if name.endswith("finished.json")] != []
    assert remove_all(copies) == [True]
    assert staged(copies) == set()


def test_what_a_run_is_copying_stays(copies: CopySandbox) -> None:
    with copies.copying() as copy:
        for number in range(len(copy.plan.tasks)):
            list(run_task(copy.job, number))
        before = staged(copies)
        with pytest.raises(StorageError):
            remove_all(copies)
        assert staged(copies) == before


def test_what_has_come_stays(copies: CopySandbox) -> None:
    """A late change of it is on its way: that goes with the instance, when that goes."""
    copies.replicate()
    copies.write({**some_files(), "more": b"late"})
    break_off(copies)
    before = staged(copies)
    assert remove_all(copies) == [False]
    assert staged(copies) == before


def test_nothing_else_is_touched(copies: CopySandbox) -> None:
    """Neither what has no note, nor what a note speaks of that no copy wrote."""
    store = copies.store()
    break_off(copies)
    strangers = [
        Path(copies_folder(store, "/raw/2013/01/01/01"), "primary", "attempt", "data", "part"),
        Path(copies_folder(store, PATH), "README"),
        Path(copies_folder(store, PATH), "other", "attempt", "data", "part"),
        Path(unfinished_note(store, "/raw/2013/01/01/01", "primary")).with_name("note"),
        Path(unfinished_note(store, "/raw/2013/01/01/01", "primary")),
        Path(store.staging, "copies", "part"),
        Path(store.staging, "part"),
    ]
    for stranger in strangers:
        stranger.parent.mkdir(parents=True, exist_ok=True)
        stranger.write_text("/raw/2013/01/01/02")
    assert remove_all(copies) == [True]
    assert staged(copies) == {str(one.relative_to(store.staging)) for one in strangers}


def test_links_are_not_followed(copies: CopySandbox, tmp_path: Path) -> None:
    break_off(copies)
    folder = Path(copies_folder(copies.store(), PATH))
    elsewhere = folder.parents[1] / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    with pytest.raises(StorageError) as refused:
        remove_all(copies)
    assert str(refused.value) == (
        f"cluster 'backup': cannot remove what was staged of {PATH}: {folder} is a symbolic link, "
        "and those are not followed: move it away"
    )
    assert len(list(elsewhere.rglob("*"))) > 5


@pytest.mark.soak
def test_a_copy_that_is_killed_at_every_step_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its instance has come, or all that it staged goes: what a killed publication had in hand, too."""
    seen: Counter[bool] = Counter()
    for step in count(1):
        copies = CopySandbox(tmp_path / str(step))
        copies.write({"a": b"1", "AA/b": b"2"})
        if not killed_before(step, STEPS, copies.replicate):
            break
        removed = remove_all(copies)
        has_come = os.path.lexists(copies.store().path(PATH))
        seen[has_come] += 1
        if has_come:
            assert removed in ([False], [])
            assert copies.read() == copies.read("primary")
        else:
            assert staged(copies) == set()
            assert removed in ([True], [])
    assert seen[False] > 30
    assert seen[True] > 3


@pytest.mark.soak
def test_a_removal_that_is_killed_at_every_step_is_completed(tmp_path: Path) -> None:
    for step in count(1):
        copies = CopySandbox(tmp_path / str(step), sources=TWO)
        copies.write({"primary/a": b"1"})
        copies.write({"second/b": b"2", "second/c": b"3"}, "second")
        copies.bring("primary")
        break_off(copies, "second")
        was_killed = killed_before(step, STEPS, partial(remove_all, copies))
        remove_all(copies)
        assert staged(copies) == set()
        if not was_killed:
            break
    assert step > 15
