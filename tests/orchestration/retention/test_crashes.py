"""A pass of retention that is killed before any of its steps, in the database or on the disk: the next completes it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import Engine, event, select

from falcon_assets.features.retention import store as evictions
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.history.dagster_internals.events import record_in_run
from falcon_assets.history.tables import EVICTIONS, FEED_INSTANCES
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.ledger.histories import content
from tests.processes import killed_before
from tests.world import MakeWorld, World

pytestmark = pytest.mark.soak
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
schedule: true
locations:
  data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"
  stats: "/stats/{name}-${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"
clusters:
  - name: primary
    validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
    retention: {{limit: hours(2), {retention}}}
"""
ARCHIVE = 'action: archive, archive_to: "/old/{}-${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"'
RETENTION = {
    "deleted": "action: delete",
    "archived": ARCHIVE.format("archived"),
    "moved": ARCHIVE.format("moved") + ", archive_cluster: cold",
}
STEPS = {"sql.write", "sql.commit", "open.write", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}
"""Audit events: what changes the database, and which files and folders there are."""
DATA = {"part.json": "row\n", "_SUCCESS": ""}


def tell_steps() -> None:
    """Raises audit events for statements that write, for commits, and for files that are opened for writing."""

    def statement(connection: Any, cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().startswith(("INSERT", "UPDATE", "DELETE")):
            sys.audit("sql.write")

    def opened(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            sys.audit("open.write")

    event.listen(Engine, "before_cursor_execute", statement)
    event.listen(Engine, "commit", lambda connection: sys.audit("sql.commit"))
    sys.addaudithook(opened)


@dataclass(frozen=True)
class Hours(World):
    """A feed at one time of its life: two instances that are too old, one that is not, and what is no instance."""

    run: dg.DagsterRun
    feed: str
    now: datetime

    @property
    def old(self) -> list[datetime]:
        return [self.now - timedelta(hours=hours) for hours in (4, 3)]

    @property
    def young(self) -> datetime:
        return self.now - timedelta(hours=1)

    def folder(self, instance: datetime) -> Path:
        return self.settings.home / "data/primary" / self.feed / f"{instance:%Y-%m-%d}" / f"{instance:%H}"

    def stats(self, instance: datetime) -> Path:
        return self.settings.home / "data/primary/stats" / f"{self.feed}-{instance:%Y-%m-%d-%H}"

    def archive(self, instance: datetime, folder: str = "old") -> Path:
        where = "cold" if self.feed == "moved" else "primary"
        return self.settings.home / "data" / where / folder / f"{self.feed}-{instance:%Y-%m-%d-%H}"

    @property
    def sibling(self) -> Path:
        return self.folder(self.old[0]).with_suffix(".bak")

    def land(self) -> None:
        for folder in (*map(self.folder, (*self.old, self.young)), self.sibling):
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in DATA.items():
                (folder / name).write_text(text)
        for instance in (*self.old, self.young):
            self.stats(instance).parent.mkdir(exist_ok=True)
            self.stats(instance).write_text("123456")

    def clear(self) -> None:
        """Takes away what would be found at the next time."""
        shutil.rmtree(self.folder(self.young))
        self.stats(self.young).unlink()
        shutil.rmtree(self.sibling)

    def evict(self) -> PassResult:
        settings = Settings(**{**vars(self.settings), "clock": Clock(origin=self.now)})
        feeds = [self.store.feed(self.feed)]
        retention = RetentionPass(self.store, self.store.cluster("primary"), feeds, settings, 0)
        return retention.run(self.ledger, self.run.run_id, record_in_run(self.instance, self.run, "evict"))

    def complete_without_retention(self) -> bool:
        """What the definitions do when the feed has lost its retention; whether there was anything to do."""
        self.ledger.catch_up()
        entry = self.store.feed(self.feed).clusters[0].model_copy(update={"retention": None})
        feed = self.store.feed(self.feed).model_copy(update={"clusters": (entry,)})
        store = replace(self.store, feeds={self.feed: feed})
        retention = RetentionPass(store, store.cluster("primary"), (), self.settings, 0)
        wanted = retention.has_leftovers(self.ledger)
        if wanted:
            passed = retention.run(self.ledger, self.run.run_id, record_in_run(self.instance, self.run, "evict"))
            assert passed.problems == ()
            assert not retention.has_leftovers(self.ledger)
        return wanted

    def evict_killed_before(self, step: int) -> bool:
        """Whether it came to that step. No connection is open when the child begins: it opens its own."""
        self.ledger.engine.dispose()
        self.instance.event_log_storage.dispose()

        def evict() -> None:
            tell_steps()
            self.evict()

        return killed_before(step, STEPS, evict)

    def check_while_incomplete(self) -> None:
        self.check_others()
        with self.ledger.engine.connect() as connection:
            own = (EVICTIONS.c.feed == self.feed, EVICTIONS.c.instance.in_(self.old))
            decided = set(connection.execute(select(EVICTIONS.c.instance).where(*own)).scalars())
        for instance in self.old:
            here = files(self.folder(instance))
            assert here in (DATA, {})
            assert here or instance in decided
            if self.feed != "deleted":
                there = files(self.archive(instance))
                assert there in (DATA, {})
                assert here or there

    def check_whole_or_gone(self) -> list[bool]:
        """That each old instance is all there, or gone, freed and EVICTED; which of them went."""
        self.check_others()
        self.check_nothing_is_staged()
        self.ledger.catch_up()
        table = FEED_INSTANCES.c
        with self.ledger.engine.connect() as connection:
            assert evictions.undone(connection, "primary", [self.feed]) == []
            own = (table.feed == self.feed, table.instance.in_(self.old), table.state == "EVICTED")
            evicted = set(connection.execute(select(table.instance).where(*own)).scalars())
        for instance in self.old:
            assert files(self.folder(instance)) == ({} if instance in evicted else DATA)
            assert self.stats(instance).exists() is (instance not in evicted)
        return [instance in evicted for instance in self.old]

    def check_nothing_is_staged(self) -> None:
        for cluster in ("primary", "cold"):
            staged = files(self.settings.home / "data" / cluster / ".falcon")
            locks = [name for name in staged if name.endswith(".lock")]  # empty files, gone with their next holder
            assert sorted(staged) == sorted(locks)

    def copied(self) -> bool:
        """Whether a part of something lies in the archive's staging location."""
        return bool(files(self.settings.home / "data/cold/.falcon"))

    def evict_to(self, archive: str) -> None:
        """A pass of definitions that archive somewhere else."""
        entry = self.store.feed(self.feed).clusters[0]
        elsewhere = {
            "archive_to": PathTemplate.parse(f"/{archive}/{self.feed}-${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}")
        }
        changed = entry.model_copy(
            update={"retention": entry.retention and entry.retention.model_copy(update=elsewhere)}
        )
        feed = self.store.feed(self.feed).model_copy(update={"clusters": (changed,)})
        store = replace(self.store, feeds={self.feed: feed})
        assert replace(self, store=store).evict().problems == ()

    def check_others(self) -> None:
        assert files(self.folder(self.young)) == files(self.sibling) == DATA
        assert self.stats(self.young).read_text() == "123456"

    def check_complete(self) -> None:
        self.check_others()
        for instance in self.old:
            assert (self.folder(instance).exists(), self.stats(instance).exists()) == (False, False)
            if self.feed != "deleted":
                assert files(self.archive(instance)) == DATA
                assert Path(f"{self.archive(instance)}.stats").read_text() == "123456"
        for cluster in ("primary", "cold"):
            assert files(self.settings.home / "data" / cluster / ".falcon") == {}
        self.ledger.catch_up()
        table = FEED_INSTANCES.c
        with self.ledger.engine.connect() as connection:
            assert evictions.undone(connection, "primary", [self.feed]) == []
            own = (table.feed == self.feed, table.instance.in_([*self.old, self.young]))
            columns = (table.instance, table.state, table.evicted_bytes, table.evicted_by)
            rows = connection.execute(select(*columns).where(*own)).all()
        assert sorted(map(tuple, rows)) == [(one, "EVICTED", 10, self.run.run_id) for one in self.old]


def files(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> World:
    clusters = [cluster_yaml(name) for name in ("primary", "cold")]
    feeds = [FEED.format(name=name, retention=retention) for name, retention in RETENTION.items()]
    return make_world({"all.yaml": "".join([*clusters, *feeds])})


@pytest.mark.parametrize("feed", RETENTION)
def test_killed_before_every_step(world: World, feed: str) -> None:
    completed_by_next = []
    job = definitions_of(world.store, world.settings).resolve_job_def("primary__retention_hours_6")
    run = world.instance.create_run_for_job(job)
    for step in count(1):
        now = parse_instant("2013-01-02T00:00Z") + step * timedelta(hours=5)
        hours = Hours(**vars(world), run=run, feed=feed, now=now)
        hours.land()
        was_killed = hours.evict_killed_before(step)
        hours.check_while_incomplete()
        completed = hours.evict()
        assert completed.problems == ()
        hours.check_complete()
        hours.clear()
        completed_by_next.append(completed.instances)
        if not was_killed:
            break
    # A kill leaves both to the next pass, until it comes after the decision was noted as done.
    assert completed_by_next == sorted(completed_by_next, reverse=True)
    assert set(completed_by_next) == {2, 0}
    assert completed_by_next.count(2) > 20
    rows = content(world.ledger.engine)
    world.ledger.rebuild()
    assert content(world.ledger.engine) == rows


@pytest.mark.parametrize("feed", ["deleted", "moved"])
def test_killed_before_every_step_and_nothing_is_retained_any_more(world: World, feed: str) -> None:
    """What the pass had begun is completed, its space is freed, nothing else goes, and no part of a copy is left."""
    job = definitions_of(world.store, world.settings).resolve_job_def("primary__retention_hours_6")
    run = world.instance.create_run_for_job(job)
    seen, copied = set(), 0
    for step in count(1):
        now = parse_instant("2013-07-01T00:00Z") + step * timedelta(hours=5)
        hours = Hours(**vars(world), run=run, feed=feed, now=now)
        hours.land()
        was_killed = hours.evict_killed_before(step)
        copied += hours.copied()
        wanted = hours.complete_without_retention()
        gone = hours.check_whole_or_gone()
        if feed == "moved":
            assert all(
                files(hours.archive(one)) in ([DATA] if went else [DATA, {}])
                for one, went in zip(hours.old, gone, strict=True)
            )
        seen.add((wanted, *gone))
        hours.clear()
        for instance in hours.old:
            shutil.rmtree(hours.folder(instance), ignore_errors=True)
            hours.stats(instance).unlink(missing_ok=True)
        if not was_killed:
            break
    # Nothing was begun; one went, both went; or only their space was still taken, and at last not even that.
    assert seen == {
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
        (False, True, True),
    }
    assert (copied > 5) == (feed == "moved")


def test_killed_before_every_step_and_archived_elsewhere_then(world: World) -> None:
    """An instance that was not begun goes whole where it is to go now, and no part of it is left where it was to go."""
    job = definitions_of(world.store, world.settings).resolve_job_def("primary__retention_hours_6")
    run = world.instance.create_run_for_job(job)
    copied, places = 0, set()
    for step in count(1):
        now = parse_instant("2013-10-01T00:00Z") + step * timedelta(hours=5)
        hours = Hours(**vars(world), run=run, feed="moved", now=now)
        hours.land()
        was_killed = hours.evict_killed_before(step)
        copied += hours.copied()
        hours.evict_to("older")
        assert hours.check_whole_or_gone() == [True, True]
        for instance in hours.old:
            old, older = hours.archive(instance), hours.archive(instance, "older")
            assert (files(old), files(older)) in ((DATA, {}), ({}, DATA), (DATA, DATA))
            places.add((old.exists(), older.exists()))
        hours.clear()
        if not was_killed:
            break
    assert copied > 5
    # At last: what was in the archive whole when the pass was killed stays there.
    assert places == {(True, False), (False, True), (True, True)}
