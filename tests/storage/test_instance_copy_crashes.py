"""A copy that is killed anywhere is resumed, copies no verified file twice, and shows no reader a part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.copy_sandbox import CopySandbox
from tests.processes import killed_before

pytestmark = pytest.mark.soak
STEPS = {
    "open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir", "os.listdir", "os.utime",
    "os.link", "shutil.rmtree", "shutil.copyfile", "fcntl.flock",
}  # fmt: skip
"""Audit events of everything that touches a file system. Each is raised just *before* the system call."""
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
OLD = {"same": b"same", "changed": b"before", "AA/gone": b"gone"}
NEW = {"same": b"same", "changed": b"afterwards", "AA/new": b"new", "more": b"and more"}


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def prepared(home: Path, again: bool) -> CopySandbox:
    copies = CopySandbox(home)
    if again:
        copies.write(OLD)
        copies.replicate()
    copies.write(NEW)
    return copies


def verified(copies: CopySandbox) -> set[str]:
    """The files of which a record says, truly, that they are as the source's: in staging or published."""
    found = set()
    staging = Path(copies.store().staging)
    for log in staging.glob("copies/*/primary/attempt-*/records/*.jsonl"):
        for line in log.read_bytes().splitlines():
            name, size, *_ = json.loads(line)
            data = log.parent.parent / "data" / name
            if data.exists() and data.stat().st_size == size:
                found.add(name)
    return found


@pytest.mark.parametrize("again", [False, True], ids=["for the first time", "after a late change"])
def test_killed_at_every_step(home: Path, again: bool) -> None:
    seen: Counter[str] = Counter()
    resumed = 0
    for step in count(1):
        copies = prepared(home / str(step), again)
        if not killed_before(step, STEPS, copies.replicate):
            break
        state = copies.read() if copies.is_complete() else None
        assert state in (None, OLD, NEW) if again else state in (None, NEW)
        seen["none" if state is None else "old" if state == OLD else "new"] += 1
        before = verified(copies)
        copies.replicate()
        outcomes = {report.name: report.outcome for report in copies.reports}
        assert [name for name in before if outcomes.get(name) == "copied"] == []
        resumed += sum(outcome == "resumed" for outcome in outcomes.values())
        assert copies.read() == NEW
        assert copies.is_complete()
        left = list(Path(copies.store().staging).glob("copies/*/primary/attempt-*/data"))
        assert left == []
        assert not copies.replicate().to_publish
    assert step > 60
    assert seen.keys() == ({"none", "old", "new"} if again else {"none", "new"})
    assert resumed > 20


def test_killed_again_and_again(home: Path) -> None:
    """Each attempt goes on where the one before it ended."""
    copies = prepared(home, again=False)
    attempts = 0
    while killed_before(45 + 2 * attempts, STEPS, copies.replicate):
        attempts += 1
        assert not copies.is_complete() or copies.read() == NEW
        assert attempts < 100
    assert copies.read() == NEW
    assert attempts > 3


@pytest.mark.parametrize("late", [False, True], ids=["for the first time", "after a late change"])
def test_killed_at_every_step_of_the_last_of_several_sources(home: Path, late: bool) -> None:
    for step in count(1):
        copies = CopySandbox(home / str(step), sources={"primary": "${cluster.name}", "second": "${cluster.name}"})
        copies.write({"primary/a": b"1", "primary/b": b"2"})
        copies.write({"second/c": b"3"}, "second")
        assert copies.bring("primary") is None
        expected = {"primary/a": b"1", "primary/b": b"2", "second/c": b"3"}
        before = None
        if late:
            before = copies.bring("second") and copies.read()
            copies.write({"second/d": b"4"}, "second")
            expected = {"primary/a": b"1", "primary/b": b"2", "second/d": b"4"}
        lived = not killed_before(step, STEPS, partial(copies.bring, "second"))
        if copies.is_complete():
            assert copies.read() in (before, expected)
        if lived:
            break
        assert copies.bring("second") is not None
        assert copies.read() == expected
        assert copies.bring("primary") is not None
        assert copies.read() == expected
    assert step > 30
