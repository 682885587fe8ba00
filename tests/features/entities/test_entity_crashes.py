"""Commands to definitions that are killed at any step, and many at once: the tree is the old one or the new one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.yaml_files.journal import FOLDER, locked_tree
from falcon_assets.errors import DefinitionStoreError, FalconError, InvalidDefinitionsError, MissingDefinitionsError
from falcon_assets.features.entities.changing import delete, submit, update
from falcon_assets.features.falcon_xml.operations import import_xml
from falcon_assets.operations.installation import Installation, open_installation
from tests.features.entities.trees import (
    AWAY,
    BACKUP,
    DELAYS,
    HOURLY,
    PRIMARY,
    RAW,
    content,
    installation_of,
    request,
    settings_of,
    written,
)
from tests.features.falcon_xml.definitions import ALL
from tests.processes import forked, killed_before
from tests.properties import examples

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir", "os.listdir", "os.utime"}
"""Audit events of everything that touches a file system. Each is raised just *before* the system call."""
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A kill does not care whether the file system is on a disk; thousands of fsyncs do."""


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def tree(folder: Path) -> Path:
    """Entities in a file each, and two in one."""
    root = written(folder / "defs", primary=PRIMARY, backup=BACKUP, feeds=f"{RAW}---\n{DELAYS}", hourly=HOURLY)
    (root / "hourly.sql").write_text("SELECT 1")
    return root


def submission(falcon: Installation, folder: Path) -> None:
    new = "---\n".join(part.replace("name: raw", "name: new").replace("/raw/", "/new/") for part in (RAW,))
    third = PRIMARY.replace("name: primary", "name: third").replace("data/primary", "data/third")
    submit(falcon, request(written(folder / "given", a=new, b=third)))


def updating(falcon: Installation, folder: Path) -> None:
    raw, delays = (text.replace("/${HOUR}", "/h${HOUR}") for text in (RAW, DELAYS))
    process = HOURLY.replace("policy: final", "policy: backoff, delay: hours(1)")
    update(falcon, request(written(folder / "given", a=raw, b=process, c=delays)))


def deletion(falcon: Installation, _: Path) -> None:
    delete(falcon, request("hourly", "delays"))


@cache
def xml() -> TemporaryDirectory[str]:
    """A folder of XML, the same for all: what is imported says where it came from."""
    made = TemporaryDirectory()
    for name, text in ALL.items():
        Path(made.name, name).parent.mkdir(parents=True, exist_ok=True)
        Path(made.name, name).write_text(text.replace("primary", "west"))
    return made


@pytest.fixture(scope="module", autouse=True)
def _xml_of_all() -> None:
    xml()  # before there are children, each of which would make its own


def importing(falcon: Installation, _: Path) -> None:
    """Entities and their workflows, from XML."""
    import_xml([Path(xml().name)], falcon.settings.entity_defs, falcon.settings)


Operation: TypeAlias = Callable[[Installation, Path], None]
OPERATIONS: dict[str, Operation] = {"submit": submission, "update": updating, "delete": deletion, "import": importing}


def do(operation: Operation, folder: Path, database: str) -> None:
    """The operation on the tree in ``folder``/defs, as by a command of its own."""
    with open_installation(settings_of(folder, FALCON_DATABASE_URL=database)) as falcon:
        operation(falcon, folder)


def left_over(root: Path) -> list[str]:
    return [file.name for file in (root / FOLDER).glob("*") if file.name.startswith(("new-", "journal"))]


@pytest.mark.soak
@pytest.mark.parametrize("next_one", ["load", "command"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_killed_at_every_step(home: Path, database: str, operation: Operation, next_one: str) -> None:
    before = content(tree(home / "before"))
    do(operation, home / "before", database)
    after = content(home / "before" / "defs")
    found = set()
    for step in count(1):
        folder = home / str(step)
        root = tree(folder)
        was_killed = killed_before(step, STEPS, lambda folder=folder: do(operation, folder, database))
        if next_one == "load":
            load_entities(root)
            assert content(root) in (before, after)
            found.add(content(root) == after)
        do(operation, folder, database)
        assert content(root) == after
        assert left_over(root) == []
        if not was_killed:
            break
    assert step > 30
    assert found == ({True, False} if next_one == "load" else set())


@pytest.mark.soak
def test_an_import_into_a_new_folder_is_killed_at_every_step(home: Path) -> None:
    do(importing, home / "whole", AWAY)
    after = content(home / "whole" / "defs")
    found = set()
    for step in count(1):
        folder = home / str(step)
        folder.mkdir()
        was_killed = killed_before(step, STEPS, lambda folder=folder: do(importing, folder, AWAY))
        with suppress(MissingDefinitionsError):  # it was killed before it had begun
            load_entities(folder / "defs")
        found.add(tuple(content(folder / "defs")))
        do(importing, folder, AWAY)
        assert content(folder / "defs") == after
        assert left_over(folder / "defs") == []
        if not was_killed:
            break
    assert found == {(), tuple(after)}


@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(1, 120)), max_size=5))
@examples(25)
def test_killed_again_and_again(database: str, steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory(dir=MEMORY) as name:
        folder = Path(name)
        root = tree(folder)

        def attempt(operation: Operation) -> None:
            with suppress(FalconError):  # what it is about is gone
                do(operation, folder, database)

        for operation, step in steps:
            killed_before(step, STEPS, lambda operation=operation: attempt(OPERATIONS[operation]))
            load_entities(root)
            assert "journal.json" not in left_over(root)


def test_what_somebody_else_wrote_after_a_kill_stays(home: Path) -> None:
    for step in count(1):
        folder = home / str(step)
        root = tree(folder)
        assert killed_before(step, {"os.rename"}, lambda folder=folder: do(updating, folder, AWAY))
        if (root / FOLDER / "journal.json").exists():
            break
    mine = (root / "hourly.yaml").read_text() + "# mine\n"
    (root / "hourly.yaml").write_text(mine)
    store = load_entities(root)
    assert (root / "hourly.yaml").read_text() == mine
    assert "/h${HOUR}" in str(store.feeds["raw"].locations)


def test_a_journal_that_leads_out_of_the_tree_is_refused(home: Path) -> None:
    root = tree(home)
    with locked_tree(root):
        pass
    (root / FOLDER / "new-0").write_text("x")
    (root / FOLDER / "journal.json").write_text('{"files": [{"path": "../out", "before": null, "after": "y"}]}')
    with pytest.raises(DefinitionStoreError, match=r"is not in .*: remove .*journal.json"):
        load_entities(root)
    assert not (home / "out").exists()
    (root / FOLDER / "journal.json").write_text("{")
    with pytest.raises(DefinitionStoreError, match=r"journal.json is damaged"):
        load_entities(root)


def submitted_alone(folder: Path, number: int, text: str) -> None:
    try:
        submit(installation_of(folder), request(written(folder / f"given{number}", a=text)))
    except (InvalidDefinitionsError, MissingDefinitionsError):
        os._exit(3)  # what it needs is not there yet


def test_fifty_at_once_that_need_each_other(home: Path) -> None:
    """A chain of processes over feeds on one cluster; whoever comes too early comes again."""
    root = home / "defs"
    root.mkdir()
    (root / "hourly.sql").write_text("SELECT 1")
    feed = DELAYS.replace("name: delays", "name: feed-{}").replace("/delays/", "/feed-{}/")
    process = "".join(line for line in HOURLY.splitlines(keepends=True) if not line.startswith("late_process"))
    texts = [PRIMARY, *(feed.replace("feed-{}", f"feed-{number}") for number in range(25))]
    for number in range(24):
        own = process.replace("name: hourly", f"name: process-{number}").replace("feed: raw", f"feed: feed-{number}")
        texts.append(own.replace("feed: delays", f"feed: feed-{number + 1}"))
    assert len(texts) == 50

    def reading() -> None:
        """Reads all the time, and never sees a part of a change."""
        while True:
            with suppress(MissingDefinitionsError):  # nothing yet
                load_entities(root)

    reader = forked(reading)
    try:
        pending, rounds = dict(enumerate(texts)), 0
        while pending:
            children = {forked(lambda one=one: submitted_alone(home, *one)): one[0] for one in pending.items()}
            for child, number in children.items():
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                assert code in (0, 3)
                if code == 0:
                    del pending[number]
            load_entities(root)
            rounds += 1
            assert rounds <= 3, f"after the cluster, the feeds, the processes there are left: {sorted(pending)}"
        assert os.waitpid(reader, os.WNOHANG) == (0, 0), "the reader saw a tree with problems"
    finally:
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)
    store = load_entities(root)
    assert (len(store.clusters), len(store.feeds), len(store.processes)) == (1, 25, 24)
    assert left_over(root) == []
