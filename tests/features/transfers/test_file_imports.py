"""Imports of files from a real SFTP server, read again as plain files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import access_to
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.history.tables.transfers import TRANSFERS
from tests.builders import cluster_yaml, feed_yaml, on
from tests.sftp_server import SftpServer, sftp_server
from tests.world import MakeWorld, World

DATASOURCE = """---
kind: datasource
name: partner
type: sftp
interfaces:
  readonly:
    endpoint: '{endpoint}/out'
    credential: {{user: partner, password: {{env: PARTNER_PASSWORD}}}}
driver: {{host_key: '{host_key}'}}
throttle: {{connections: 2, bytes_per_second: 100000000}}
"""
PATTERN = {"source": {"name": "partner", "path": "${YEAR}${MONTH}${DAY}-${HOUR}/*.csv"}}
FOLDER = {"source": {"name": "partner", "path": "/${YEAR}${MONTH}${DAY}-${HOUR}"}, "delay": "minutes(5)"}
SINGLE = {"source": {"name": "partner", "path": "one/${HOUR}.csv"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    root = tmp_path_factory.mktemp("sftp")
    (root / "out").mkdir()
    with sftp_server(root) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARTNER_PASSWORD", found.password)
        yield found


@pytest.fixture(scope="module")
def world(server: SftpServer, make_world: MakeWorld) -> World:
    csv = {"format": "csv", "options": {"header": "true"}, "schedule": True}
    feeds = [
        feed_yaml(name, on("primary", **{"import": declared}), **csv)
        for name, declared in (("matching", PATTERN), ("whole", FOLDER), ("single", SINGLE))
    ]
    datasource = DATASOURCE.format(endpoint=server.endpoint, host_key=server.host_key)
    return make_world({"all.yaml": "".join([cluster_yaml(), datasource, *feeds])})


def send(server: SftpServer, name: str, content: str) -> Path:
    file = server.root / "out" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def test_files_are_there_as_they_were_sent(server: SftpServer, world: World) -> None:
    send(server, "20130101-00/a b ü.csv", "n\n1\n")
    send(server, "20130101-00/_temporary.csv", "n\n0\n")
    send(server, "20130101-00/part/c.csv", "n\n3\n")
    send(server, "20130101-00/notes.txt", "n\n4\n")
    send(server, "one/00.csv", "n\n5\n")
    assert world.step("00:59") == []  # the hour is not over
    assert world.step("01:00") == [
        "matching import on primary, 2013-01-01T00:00Z, attempt 1",
        "single import on primary, 2013-01-01T00:00Z, attempt 1",
    ]
    assert world.step("01:05") == ["whole import on primary, 2013-01-01T00:00Z, attempt 1"]
    assert files(world, "matching") == {"a b ü.csv": "n\n1\n"}
    assert files(world, "single") == {"00.csv": "n\n5\n"}
    assert files(world, "whole") == {"a b ü.csv": "n\n1\n", "notes.txt": "n\n4\n", "part/c.csv": "n\n3\n"}
    (published,) = world.published("primary", "matching", 0)
    assert (published.process, published.files, published.bytes) == ("matching import", 1, 4)
    with world.ledger.engine.connect() as connection:
        (row,) = connection.execute(select(TRANSFERS).where(TRANSFERS.c.process == "matching import"))
    assert (row.datasource, row.dataset) == ("partner", "20130101-00/*.csv")


def files(world: World, feed: str, number: int = 0) -> dict[str, str]:
    folder = world.folder("primary", feed, number).parent / f"2013-01-01/{number:02}"
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


def test_what_has_not_come_is_waited_for_and_is_no_failure(server: SftpServer, world: World) -> None:
    assert world.step("02:00") == [
        "matching import on primary, 2013-01-01T01:00Z, attempt 1",
        "single import on primary, 2013-01-01T01:00Z, attempt 1",
    ]
    row = world.rows("single import")[1]
    assert (row["state"], row["failures"]) == ("WAITING", 0)
    assert "there is no file at one/01.csv yet" in row["reason"]
    send(server, "one/01.csv", "n\n6\n")
    assert world.step("02:09") == ["whole import on primary, 2013-01-01T01:00Z, attempt 1"]
    assert "single import on primary, 2013-01-01T01:00Z, attempt 2" in world.step("02:10")
    assert files(world, "single", 1) == {"01.csv": "n\n6\n"}


def test_a_rerun_takes_what_is_there_now(server: SftpServer, world: World) -> None:
    send(server, "one/00.csv", "n\n55\n")
    job = "primary__single__import_job"
    assert world.run_job(job, "03:00", partition_key="2013-01-01T00:00Z").success
    assert files(world, "single") == {"00.csv": "n\n55\n"}
    assert len({one.version for one in world.published("primary", "single", 0)}) == 2


def test_another_host_key_is_refused(server: SftpServer, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBg5hBBAsBhFm3VHyBT1uSMhKEyXNqKq8wDpoNy3vkQZ"
    datasource = world.store.datasources["partner"]
    access = access_to(datasource.model_copy(update={"driver": {"host_key": other}}), os.environ, write=False)
    with pytest.raises(DatasourceError, match="has another host key than"):
        datasource_types()["sftp"].require_reachable(access)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"password": "wrong"}, "the login of 'partner' was refused"),
        ({"driver": {}}, "must have the server's public key"),
        ({"endpoint": "sftp://127.0.0.1:1/out"}, "127.0.0.1:1 does not answer"),
        ({"endpoint_more": "/nowhere"}, "there is no folder /out/nowhere"),
    ],
)
def test_what_is_wrong_is_said_without_secrets(
    server: SftpServer, world: World, change: dict[str, Any], said: str
) -> None:
    access = access_to(world.store.datasources["partner"], os.environ, write=False)
    more = change.pop("endpoint_more", "")
    changed = replace(access, **{"endpoint": f"{access.endpoint}{more}", **change})
    with pytest.raises(DatasourceError, match=said) as error:
        datasource_types()["sftp"].require_reachable(changed)
    assert server.password not in str(error.value) + repr(changed)


def test_a_private_key_instead_of_a_password(server: SftpServer, world: World) -> None:
    access = access_to(world.store.datasources["partner"], os.environ, write=False)
    changed = replace(access, password=None, private_key=server.private_key)
    datasource_types()["sftp"].require_reachable(changed)
    assert [one.name for one in datasource_types()["sftp"].datasets(changed, "one")] == ["one/00.csv", "one/01.csv"]
