"""What cannot be reached stops nothing else: ``falcon run`` and ``falcon retention plan`` go on, and name it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.listener import share_listener
from tests.processes import environ_with, falcon_here, free_port

pytestmark = pytest.mark.soak  # it waits for what does not answer

VALIDITY = "{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
CLUSTER = """
kind: cluster
name: {name}
interfaces: {{write: {{endpoint: "{write}"}}, execute: {{endpoint: "{execute}"}}}}
properties: {{spark.sql.shuffle.partitions: "1", spark.driver.memory: 512m}}
storage_options: {options}
---
"""
FEED = """
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "delay int"
schedule: true
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: {cluster}, validity: {validity}, retention: {{limit: hours(2)}}{more}]
---
"""
PROCESS = """
kind: process
name: {name}
clusters: [{{name: {cluster}, validity: {validity}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: {reads}, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: {writes}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: all.sql}}
schedule: true
---
"""


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """The port of a server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def environ(database: str, tmp_path_factory: pytest.TempPathFactory, silent: int) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    (home / "entities").mkdir()
    (home / "entities/all.sql").write_text("SELECT * FROM rows")
    mute = (
        "{key: k, secret: s, config_kwargs: {read_timeout: 1}, "
        f'client_kwargs: {{endpoint_url: "http://127.0.0.1:{silent}"}}}}'
    )
    clusters = [
        ("a-mute", "s3://lake", "local[1]", mute),
        ("b-poor", "s3://lake", "local[1]", "{key: {env: NOBODY_SET_THIS}}"),
        ("c-lost", "data/lost", f"sc://127.0.0.1:{free_port()}", "{}"),
        ("d-good", "data/good", "local[1]", "{}"),
    ]
    text = ""
    for name, write, execute, options in clusters:
        text += CLUSTER.format(name=name, write=write, execute=execute, options=options)
        reads, writes = f"raw-{name}", f"out-{name}"
        if write.startswith("s3:"):  # a replication looks there
            more = f", type: source}}, {{name: d-good, type: target, validity: {VALIDITY}}}"
            text += FEED.format(name=reads, cluster=name, validity=VALIDITY, more=more)
            continue
        for feed in (reads, writes):
            text += FEED.format(name=feed, cluster=name, validity=VALIDITY, more="}")
        text += PROCESS.format(name=f"copy-{name}", cluster=name, reads=reads, writes=writes, validity=VALIDITY)
    (home / "entities/all.yaml").write_text(text)
    for name in ("c-lost", "d-good"):
        folder = home / "data" / name[2:] / f"raw-{name}/2013-01-01-00"
        folder.mkdir(parents=True)
        (folder / "part.json").write_text('{"delay": 1}\n')
        (folder / "_SUCCESS").touch()
    share_listener(home)
    return environ_with(
        FALCON_HOME=str(home),
        FALCON_ENTITY_DEFS=str(home / "entities"),
        FALCON_DATABASE_URL=database,
        FALCON_CLOCK="2013-01-01T05:30Z",
        COLUMNS="300",
    )


def test_a_run_goes_on_with_the_others_and_names_what_was_left_out(environ: dict[str, str]) -> None:
    done = falcon_here(environ, "run", "--until", "2013-01-01T00:00Z")
    assert Path(environ["FALCON_HOME"], "data/good/out-d-good/2013-01-01-00/_SUCCESS").exists(), done
    assert done.stdout.splitlines()[-1] == "1 instance succeeded, 0 did not"
    left_out = [line.partition(" was left out: ")[::2] for line in done.stderr.splitlines()]
    # Its store is left alone after some looks: then the feed is counted, not named.
    assert left_out[0][0] in ("Error: raw-a-mute on a-mute", "Error: a store of 1 feed on a-mute")
    assert [what for what, _ in left_out[1:]] == ["Error: raw-b-poor on b-poor", "Error: what runs on c-lost"]
    assert "NOBODY_SET_THIS, which is not set" in left_out[1][1]
    assert "no Spark Connect server answers at sc://127.0.0.1:" in left_out[2][1]
    assert done.returncode == 1


def test_a_retention_plan_shows_what_it_can(environ: dict[str, str]) -> None:
    done = falcon_here(environ, "retention", "plan", "--json")
    plans = {one["feed"]: one for one in json.loads(done.stdout)}
    assert [one["action"] for one in plans["raw-d-good"]["instances"]] == ["delete"]
    assert {name[4:] for name, one in plans.items() if "problem" in one} == {"a-mute", "b-poor"}
    assert len(done.stderr.splitlines()) == 2
    assert done.returncode == 1
