"""A backup while hundreds of copies go on, after which that installation is lost: the restored one does the rest."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psycopg2
import pytest

from tests.builders import cluster_yaml
from tests.processes import FALCON, environ_with
from tests.servers import libpq_url, new_database, url_of
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
HOURS = 20
INSTANCES = HOURS * 12
DONE = """
SELECT partition, count(*) FROM event_logs
WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND asset_key = '["backup", "plain"]' GROUP BY 1
"""
FEED = f"""---
kind: feed
name: plain
frequency: minutes(5)
availability_flag: _SUCCESS
format: json
locations: {{data: "/plain/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}-${{MINUTE}}"}}
clusters:
  - {{name: east, type: source, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-01T{HOURS}:00Z}}}}
  - {{name: backup, type: target, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-01T{HOURS}:00Z}}}}
schedule: true
"""


def done(url: str) -> dict[str, int]:
    """How often each instance was copied, as Dagster's log says."""
    with closing(psycopg2.connect(libpq_url(url))) as connection, connection.cursor() as cursor:
        cursor.execute(DONE)
        return dict(cursor.fetchall())


def test_the_restored_installation_does_the_rest_and_nothing_twice(
    postgres: str, template: str, tmp_path: Path
) -> None:
    data, one, two = (tmp_path / name for name in ("data", "one", "two"))
    for folder in (data, one, two):
        folder.mkdir()
    execute = {"endpoint": "local[1]"}  # which copies of a few files do not need
    places = [
        (name, {"write": {"endpoint": (data / name).as_uri()}, "execute": execute}) for name in ("east", "backup")
    ]
    definitions = one / "entity_defs"
    definitions.mkdir()
    entities = "".join(cluster_yaml(name, interfaces=where) for name, where in places) + FEED
    (definitions / "all.yaml").write_text(entities)
    for number in range(INSTANCES):
        hour, minute = divmod(number * 5, 60)
        folder = data / "east" / "plain" / f"2013-01-01-{hour:02}-{minute:02}"
        folder.mkdir(parents=True)
        (folder / "a.json").write_text(f'{{"n": {number}}}\n')
        (folder / "_SUCCESS").touch()
    with new_database(postgres, template) as name, new_database(postgres, "template0") as other:
        urls = url_of(postgres, name), url_of(postgres, other)
        environs = [
            environ_with(FALCON_DATABASE_URL=url, FALCON_HOME=str(folder / "home"), FALCON_CLOCK="2013-01-02T00:00Z")
            for url, folder in zip(urls, (one, two), strict=True)
        ]
        with (tmp_path / "run.log").open("wb") as log:
            command = [FALCON, "run", "--until", "2013-01-02T00:00Z"]
            run = subprocess.Popen(command, cwd=one, env=environs[0], stdout=log, stderr=log, start_new_session=True)
            try:
                wait_until(lambda: run.poll() is not None or len(done(urls[0])) > 3, 900, log.name)
                assert run.poll() is None, Path(log.name).read_text()
                falcon(one, environs[0], "admin", "backup", str(tmp_path / "x.backup"))
                assert run.poll() is None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)
                run.wait()
        falcon(two, environs[1], "admin", "restore", str(tmp_path / "x.backup"))
        assert (two / "entity_defs" / "all.yaml").read_text() == entities
        before = done(urls[1])
        assert 3 < len(before) < INSTANCES
        falcon(two, environs[1], "run", "--until", "2013-01-02T00:00Z")
        after = done(urls[1])
        assert len(after) == INSTANCES
        assert set(after.values()) == {1}
        said = falcon(two, environs[1], "instance", "list", "plain", "--json", "--limit", "1000")
        assert said.count('"2013-01-01T') >= INSTANCES
    for path in (data / "east").rglob("a.json"):
        assert (data / "backup" / path.relative_to(data / "east")).read_bytes() == path.read_bytes()
    assert len([*(data / "backup").rglob("a.json")]) == INSTANCES


def falcon(folder: Path, environ: dict[str, str], *words: str) -> str:
    ended = subprocess.run([FALCON, *words], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return ended.stdout
