"""Whatever is killed while an import runs, its rows are in the feed in the end, and each once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pyarrow.parquet as pq
import pytest

from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml
from tests.faults.house import family
from tests.faults.test_kills_while_checking import OF_KIND, WAITING, WRITES, Database, kill
from tests.features.transfers.source import run_sql
from tests.features.transfers.source_server import SourceServer, source_server
from tests.features.transfers.worlds import datasource_yaml, imported
from tests.hours import hour
from tests.processes import FALCON
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
PATIENCE = 600.0
BATCH = 12_000
READING = "SELECT pid FROM pg_stat_activity WHERE application_name = 'falcon shop' AND query LIKE 'COPY%%'"
CHANGES = {"incremental": {"column": "at"}}
OF_EVENT = "NEW.event LIKE '%\"{}\"%'"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceServer]:
    with source_server(tmp_path_factory.mktemp("source"), shared_buffers="64MB") as started:
        run_sql(
            started.url,
            "CREATE TABLE orders (id int PRIMARY KEY, v int, text text, at timestamptz DEFAULT clock_timestamp())",
        )
        yield started


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceServer]:
    with source_server(tmp_path_factory.mktemp("ledger")) as started:
        yield started


@pytest.fixture(scope="module")
def database(ledger: SourceServer) -> str:
    """Instead of the one of all tests, which nobody may kill."""
    return ledger.url


class Ledger(Database):
    """A connection to the ledger, which may have been killed since it was used."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._url = url

    def ask(self, sql: str, *given: Any) -> list[Any]:
        try:
            return super().ask(sql, *given)
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            super().__init__(self._url)
            return super().ask(sql, *given)


class Site:
    """Definitions, with feeds that hold what was added (``added``) and all of a table (``whole``)."""

    def __init__(self, settings: Settings, server: SourceServer, ledger: SourceServer) -> None:
        self.server, self.ledger, self.data = server, ledger, settings.home / "data/primary"
        self.database = Ledger(ledger.url)
        self.round = 0

    @property
    def now(self) -> datetime:
        """When this round is due, after an hour for each."""
        return hour(self.round + 1)

    def write(self) -> None:
        """Adds rows, and changes some that are there."""
        self.round += 1
        first = self.round * BATCH
        run_sql(
            self.server.url,
            f"UPDATE orders SET v = {self.round}, at = clock_timestamp() WHERE id % 7 = {self.round % 7}",
            f"INSERT INTO orders SELECT {first} + n, 0, repeat('x', 100) FROM generate_series(0, {BATCH - 1}) n",
        )

    def kill_server(self, victim: str) -> None:
        """The source, or the database of the ledger, which is started again at once."""
        server = self.server if victim == "source" else self.ledger
        server.kill()
        server.control("start")

    def write_again(self) -> None:
        """Adds rows and changes some, while an instance is not done."""
        run_sql(
            self.server.url,
            f"INSERT INTO orders SELECT -{self.round} * 10 - n, 0, 'x' FROM generate_series(0, 9) n",
            f"UPDATE orders SET v = v + 1000 WHERE id % 11 = {self.round % 11}",
        )

    @contextmanager
    def falcon_run(self, log: Path, at: datetime) -> Iterator[subprocess.Popen[bytes]]:
        environ = {**os.environ, "FALCON_CLOCK": format_instant(at)}
        with log.open("ab") as said:
            child = subprocess.Popen([FALCON, "run"], stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environ)
        try:
            yield child
        finally:
            kill(child)

    def require_exact(self) -> None:
        """What plain pyarrow reads is what the table has, and had."""
        table = dict(run_sql(self.server.url, "SELECT id, v FROM orders"))
        whole = self.rows(f"whole/{format_instant(hour(self.round))[:13].replace('T', '-')}")
        assert len(whole) == len(table)
        assert dict(whole) == table
        added = [self.rows(str(one.relative_to(self.data))) for one in sorted(self.data.glob("added/*"))]
        assert len(added) == self.round + 1
        every = [row for rows in added for row in rows]
        assert len(set(every)) == len(every), "a version of a row is in two instances"
        assert dict(every) == table, "the last version of each row is the last that was added"

    def rows(self, folder: str) -> list[tuple[int, int]]:
        assert (self.data / folder / "_SUCCESS").is_file(), folder
        table = pq.read_table(self.data / folder, columns=["id", "v"])
        return list(zip(*(table[name].to_pylist() for name in ("id", "v")), strict=True))


@pytest.fixture(scope="module")
def site(
    settings: Settings,
    write_entities: Callable[[dict[str, str]], Path],
    server: SourceServer,
    ledger: SourceServer,
    shop_password: None,
) -> Iterator[Site]:
    source = {"source": {"name": "shop", "table": "orders"}, "retry": {"attempts": 2, "delay": "minutes(5)"}}
    feeds = imported("added", extract=CHANGES, **source)
    feeds += imported("whole", extract=CHANGES, merge={"upsert": {"key": ["id"]}}, **source)
    shop = datasource_yaml(server.url, throttle={"rows_per_second": 3 * BATCH // 4})
    write_entities({"all.yaml": cluster_yaml() + shop + feeds})
    with open_installation(settings) as opened:
        assert opened.instance  # the tables are there, before they have gates
    made = Site(settings, server, ledger)
    run_sql(server.url, f"INSERT INTO orders SELECT n, 0, 'x' FROM generate_series(1, {BATCH - 1}) n")
    yield made
    made.database.close()


def finish(site: Site, log: Path) -> None:
    """Runs until all is done, some minutes later, when it is tried again."""
    with site.falcon_run(log, site.now + timedelta(minutes=20)) as child:
        assert child.wait(PATIENCE) == 0, log.read_text()
    site.require_exact()


def until_read(site: Site, child: subprocess.Popen[bytes], log: Path) -> None:
    def reading() -> bool:
        assert child.poll() is None, log.read_text()
        return bool(run_sql(site.server.url, READING))

    wait_until(reading, PATIENCE, log.read_text)


def jvm_of(child: subprocess.Popen[bytes]) -> psutil.Process:
    return next(one for one in family(child.pid) if one.name() == "java")


def workers_of(child: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes in which Spark runs Python; without the first, from which it forks them."""
    return [one for one in jvm_of(child).children(recursive=True) if one.ppid() != jvm_of(child).pid]


def test_nothing_is_killed(site: Site, tmp_path: Path) -> None:
    site.write()
    finish(site, tmp_path / "log")


@pytest.mark.parametrize("victim", ["driver", "jvm"])
def test_killed_while_workers_read(site: Site, tmp_path: Path, victim: str) -> None:
    site.write()
    log = tmp_path / "log"
    with site.falcon_run(log, site.now) as child:
        until_read(site, child, log)
        if victim == "driver":
            assert kill(child) == -signal.SIGKILL
        elif victim == "source":
            site.server.kill()
        elif victim == "ledger":
            site.kill_server(victim)
        else:
            for one in workers_of(child) if victim == "worker" else [jvm_of(child)]:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        ended = child.wait(PATIENCE)
        assert ended == {"driver": -signal.SIGKILL, "ledger": ended}.get(victim, 1), log.read_text()
    if victim == "source":
        site.server.control("start")
    if victim in ("driver", "source"):  # else what did not fail is done, and has what there was
        site.write_again()
    finish(site, log)


STEPS = {
    "before it is recorded that it runs": OF_EVENT.format("RUNNING"),
    "published, before that is recorded": OF_KIND.format("ASSET_MATERIALIZATION"),
}


@pytest.mark.parametrize("victim", ["driver_lost"])
@pytest.mark.parametrize("step", STEPS, ids=[one.replace(" ", "_") for one in STEPS])
def test_killed_at_a_step(site: Site, tmp_path: Path, step: str, victim: str) -> None:
    """At a step of the driver; what it asked of the ledger there happens, or is lost with a driver or the ledger."""
    site.write()
    log = tmp_path / "log"
    with site.falcon_run(log, site.now) as child:
        with site.database.gate("INSERT ON event_logs", STEPS[step]), site.database.shut(WRITES):

            def waiting() -> list[int]:
                assert child.poll() is None, log.read_text()
                return site.database.ask(WAITING)

            waits = wait_until(waiting, PATIENCE, log.read_text)
            if victim in ("source", "ledger"):
                site.kill_server(victim)
            else:
                assert kill(child) == -signal.SIGKILL
            for one in waits if victim == "driver_lost" else ():
                site.database.ask("SELECT pg_terminate_backend(%s)", one)
        child.wait(PATIENCE)
    if victim == "driver_lost" and not step.startswith("recorded"):
        site.write_again()
    finish(site, log)
