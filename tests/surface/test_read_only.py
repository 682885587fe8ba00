"""Where the database or the definitions can only be read: what reads goes on, and changes are refused in a sentence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psycopg2
import pytest
import sqlalchemy

from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.settings import Settings
from falcon_assets.surface.served import open_served
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.processes import environ_with, falcon_here
from tests.surface.pages.served import Person
from tests.surface.pages.served import serving as serving_pages
from tests.surface.rest.servers import serving as serving_rest

ENTITIES = "".join([cluster_yaml("primary"), *map(feed_yaml, ("raw", "made")), process_yaml("make", "raw", "made")])
ONLY_READ = "can only be read now, as a standby"
HOUR = "2013-01-01T03:00Z"


@dataclass(frozen=True)
class House:
    settings: Settings
    environ: dict[str, str]

    def falcon(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = falcon_here(self.environ, *arguments)
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def reads(self, *arguments: str) -> str:
        done = self.falcon(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refuses(self, said: str, *arguments: str) -> None:
        done = self.falcon(*arguments)
        assert done.returncode == 1, done.stdout
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr

    def rows(self, query: str) -> list[tuple[object, ...]]:
        url = sqlalchemy.make_url(self.settings.database_url or "")
        _, how = sqlalchemy.create_engine(url).dialect.create_connect_args(url)
        connection = psycopg2.connect(**how)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
            cursor.execute(query)
            found = cursor.fetchall() if cursor.description else []
        connection.close()
        return found

    @contextmanager
    def only_read(self) -> Iterator[None]:
        """A database whose transactions can only read, as those of a standby."""
        name = sqlalchemy.make_url(self.settings.database_url or "").database
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        others += " AND pid <> pg_backend_pid()"
        self.rows(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        self.rows(others)
        try:
            yield
        finally:
            self.rows(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            self.rows(others)


@pytest.fixture(scope="module")
def house(settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]) -> House:
    """It has a history, of which the last event is not folded."""
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    given = {"FALCON_DATABASE_URL": settings.database_url or "", "FALCON_HOME": str(settings.home)}
    own = {"FALCON_ENTITY_DEFS": str(settings.entity_defs), "FALCON_CLOCK": "2013-01-01T06:30Z"}
    made = House(settings, environ_with(**given, **own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", own["FALCON_CLOCK"])
        made.reads("entity", "schedule", "make", "--kind", "process")
        open_ledger(settings, instance).catch_up()
        instance.report_runless_asset_event(dg.AssetMaterialization(["primary", "raw"], partition=HOUR))
    return made


def test_commands_read_what_a_database_can_only_read(house: House) -> None:
    before = {path: path.read_bytes() for path in house.settings.entity_defs.rglob("*.yaml")}
    with house.only_read():
        assert "make" in house.reads("entity", "list")
        assert HOUR in house.reads("instance", "list", "make")
        house.reads("instance", "list", "raw", "--type", "feed")
        house.reads("retention", "plan")
        house.reads("sla", "pending")
        house.reads("explain", "make", HOUR)
        house.reads("ledger", "status")
        house.reads("metrics")
        house.reads("admin", "audit")
        house.refuses(ONLY_READ, "entity", "suspend", "make", "--kind", "process")
        house.refuses(ONLY_READ, "instance", "kill", "make", "--start", HOUR)
        house.refuses(ONLY_READ, "instance", "rerun", "make", "--start", HOUR)
        house.refuses(ONLY_READ, "entity", "delete", "make", "--kind", "process")
        house.refuses(ONLY_READ, "ledger", "rebuild")
        said = house.falcon("doctor", "--only", "database").stdout
        assert "is read-only, as a standby is" in said
    assert {path: path.read_bytes() for path in house.settings.entity_defs.rglob("*.yaml")} == before
    assert "make" in house.reads("entity", "suspend", "make", "--kind", "process")
    assert house.rows("SELECT status FROM falcon.entity_status WHERE name = 'make'") == [("SUSPENDED",)]
    house.reads("entity", "resume", "make", "--kind", "process")


def test_servers_read_what_a_database_can_only_read(house: House) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", "2013-01-01T06:30Z")
        patch.setenv("FALCON_WEBSERVER_URL", "")
        with (
            open_served(seconds=60) as served,
            serving_rest(served) as client,
            serving_pages(served) as address,
        ):
            person = Person(address)
            assert "Read-only." not in person.get("/falcon/entities").text
            with house.only_read():
                assert client.rest("GET", "/entities").status_code == 200
                assert client.rest("GET", "/instances?type=process&name=make").status_code == 200
                refused = client.rest("POST", "/entities/make/suspend?kind=process", headers={"Idempotency-Key": "one"})
                assert (refused.status_code, refused.json()["type"]) == (503, "urn:falcon:read-only")
                assert ONLY_READ in refused.json()["detail"]
                for page in ("/falcon/", "/falcon/entities", "/falcon/entity?kind=process&name=make"):
                    shown = person.get(page)
                    assert shown.status == 200, shown.text
                    assert "<strong>Read-only.</strong> The database" in shown.text
                fields = [("command", "entity suspend"), ("names", "make"), ("kind", "process"), person.token()]
                done = person.post("/falcon/change/confirmed", fields)
                assert done.status == 503, done.text
                assert ONLY_READ in done.text
            assert "Read-only." not in person.get("/falcon/entities").text
            assert client.rest("POST", "/entities/make/suspend?kind=process").status_code == 200
            assert client.rest("POST", "/entities/make/resume?kind=process").status_code == 200


def mount(*arguments: str) -> None:
    subprocess.run([*arguments], check=True)


@pytest.fixture
def disk(house: House, tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own with the definitions; mounting one needs a root user."""
    place = tmp_path / "disk"
    place.mkdir()
    mount("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place))
    try:
        (place / "all.yaml").write_text(ENTITIES)
        (place / "a.sql").write_text("SELECT 1")
        yield place
    finally:
        mount("umount", "-l", str(place))


def test_definitions_on_a_disk_that_can_only_be_read(house: House, disk: Path, tmp_path: Path) -> None:
    there = House(house.settings, house.environ | {"FALCON_ENTITY_DEFS": str(disk)})
    (tmp_path / "new.yaml").write_text(feed_yaml("new"))
    mount("mount", "-o", "remount,ro", str(disk))
    assert "make" in there.reads("entity", "list")
    assert HOUR in there.reads("instance", "list", "make")
    there.refuses(f"the definitions in {disk} cannot be changed", "entity", "submit", str(tmp_path / "new.yaml"))
    there.refuses(f"the definitions in {disk} cannot be changed", "entity", "delete", "make", "--kind", "process")
    assert "make" in there.reads("entity", "suspend", "make", "--kind", "process"), "that is in the database"
    there.reads("entity", "resume", "make", "--kind", "process")
    assert f"the definitions in {disk} can only be read" in there.falcon("doctor", "--only", "definitions").stdout
    mount("mount", "-o", "remount,rw", str(disk))
    there.reads("entity", "submit", str(tmp_path / "new.yaml"))
    assert "new" in there.reads("entity", "list")


def test_definitions_on_a_full_disk(house: House, disk: Path, tmp_path: Path) -> None:
    there = House(house.settings, house.environ | {"FALCON_ENTITY_DEFS": str(disk)})
    (tmp_path / "new.yaml").write_text(feed_yaml("new"))
    with (disk / "filling").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(1024))
    assert os.statvfs(disk).f_bavail == 0
    before = (disk / "all.yaml").read_bytes()
    assert "make" in there.reads("entity", "list")
    there.refuses("No space left on device", "entity", "submit", str(tmp_path / "new.yaml"))
    assert f"the disk of the definitions in {disk} is full" in there.falcon("doctor", "--only", "definitions").stdout
    with pytest.MonkeyPatch.context() as patch:
        for name, value in there.environ.items():
            patch.setenv(name, value)
        with open_served(seconds=60) as served, serving_pages(served) as address:
            shown = Person(address).get("/falcon/entities")
            assert shown.status == 200
            assert "<strong>Read-only.</strong> The disk of the definitions" in shown.text
    assert (disk / "all.yaml").read_bytes() == before
    assert not list(disk.rglob("new.yaml"))
    (disk / "filling").unlink()
    there.reads("entity", "submit", str(tmp_path / "new.yaml"))
    assert "new" in there.reads("entity", "list")
