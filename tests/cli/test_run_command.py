"""``falcon run``: real data lands, real runs follow, and Ctrl-C leaves nothing half done."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy

from falcon_assets.history.mapping import run_tags
from tests.builders import land_rows
from tests.listener import share_listener
from tests.processes import FALCON, environ_with, falcon_here, free_port
from tests.waiting import wait_until

VALIDITY = "{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
ENTITIES = f"""
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data/primary}}, execute: {{endpoint: "local[2]"}}}}
properties: {{spark.sql.shuffle.partitions: "1", spark.driver.memory: 512m}}
---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "delay int"
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {VALIDITY}}}]
---
kind: feed
name: hourly
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/hourly/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {VALIDITY}}}]
---
kind: feed
name: doubled
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/doubled/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {VALIDITY}}}]
---
kind: process
name: sum-up
pipelines: [sums]
clusters: [{{name: primary, validity: {VALIDITY}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: sums, feed: hourly, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: sum_up.sql}}
retry: {{policy: final}}
schedule: true
---
kind: process
name: double
pipelines: [doubles]
clusters: [{{name: primary, validity: {VALIDITY}}}]
frequency: hours(1)
inputs: [{{name: sums, feed: hourly, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: doubled, feed: doubled, instance: "now(0,0)"}}]
workflow: {{engine: pyspark, path: double.py}}
schedule: true
"""
SUM_UP = "SELECT sum(CASE WHEN delay < 0 THEN raise_error('negative') ELSE delay END) AS delay FROM rows"
DOUBLE = """
import time
from pathlib import Path

def run(spark, inputs, instance):
    hold = Path({hold!r})
    if hold.exists():
        hold.with_name("held").touch()
        while hold.exists():
            time.sleep(0.05)
    return inputs["sums"].selectExpr("delay * 2 AS delay")
"""


@pytest.fixture(scope="module")
def environ(database: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    share_listener(home)
    root = home / "entities"
    root.mkdir()
    files = {"all.yaml": ENTITIES, "sum_up.sql": SUM_UP, "double.py": DOUBLE.format(hold=str(home / "hold"))}
    for name, text in files.items():
        (root / name).write_text(text)
    return environ_with(
        FALCON_HOME=str(home),
        FALCON_ENTITY_DEFS=str(root),
        FALCON_DATABASE_URL=database,
        FALCON_CLOCK="2013-01-01T05:30Z",
        COLUMNS="200",
    )


@pytest.fixture(scope="module")
def land(environ: dict[str, str]) -> Callable[[int, int], None]:
    def write(hour: int, delay: int) -> None:
        folder = Path(environ["FALCON_HOME"], "data/primary/raw/2013-01-01", f"{hour:02d}")
        land_rows(folder, {"delay": delay})

    return write


def falcon(environ: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    cwd = environ["FALCON_HOME"]
    return subprocess.run([FALCON, *args], env=environ, cwd=cwd, capture_output=True, text=True, check=False)


def run_states(environ: dict[str, str]) -> list[tuple[str, str | None]]:
    """The state of each run, in the order in which they were made, and by what it was interrupted."""
    engine = sqlalchemy.create_engine(environ["FALCON_DATABASE_URL"], poolclass=sqlalchemy.NullPool)
    interrupted = f"SELECT value FROM run_tags WHERE run_id = runs.run_id AND key = '{run_tags.INTERRUPTED}'"
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text(f"SELECT status, ({interrupted}) FROM runs ORDER BY id"))
        return [(row[0], row[1]) for row in rows]


def there(environ: dict[str, str], feed: str) -> list[str]:
    folder = Path(environ["FALCON_HOME"], "data/primary", feed, "2013-01-01")
    return sorted(flag.parent.name for flag in folder.glob("*/_SUCCESS"))


def test_runs_what_is_ready_in_order_and_says_what_is_not(environ: dict[str, str], land: Callable[..., None]) -> None:
    for hour, delay in [(0, 1), (1, 2), (2, -1), (4, 3)]:
        land(hour, delay)
    done = falcon(environ, "run", "--until", "2013-01-01T04:00Z")
    assert done.stderr == ""
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "4 instances landed" in lines
    assert lines[-1] == "6 instances succeeded, 1 did not"
    assert "sum-up on primary 2013-01-01T03:00Z: waits for rows: raw 2013-01-01T03:00Z" in lines
    assert any(line.startswith("sum-up on primary 2013-01-01T02:00Z failed: ") for line in lines)
    assert done.returncode == 1
    assert there(environ, "hourly") == there(environ, "doubled") == ["00", "01", "04"]


def test_again_there_is_nothing_to_do(environ: dict[str, str]) -> None:
    done = falcon_here(environ, "run", "--process", "double", "--until", "2013-01-01T01:00Z")
    assert done.stdout.splitlines() == ["looking for data, and for what is ready", "0 instances succeeded, 0 did not"]
    assert done.returncode == 0


def test_a_second_terminal_goes_by_the_clock_of_the_database(environ: dict[str, str], tmp_path: Path) -> None:
    """By the clock of today everything would time out, for good."""
    untold = {name: value for name, value in environ.items() if name != "FALCON_CLOCK"}
    done = falcon(untold, "run", "--process", "double", "--until", "2013-01-01T01:00Z")
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0 instances succeeded, 0 did not", "")
    assert done.returncode == 0
    elsewhere = falcon(untold | {"FALCON_HOME": str(tmp_path)}, "run")
    assert elsewhere.returncode == 1
    assert elsewhere.stderr == (
        "Error: the database uses another clock (2013-01-01T05:30Z, standing still) than this process (the "
        "real time); decisions by one are wrong by the other: set FALCON_CLOCK=2013-01-01T05:30Z, or keep another "
        "history with another FALCON_HOME or FALCON_DATABASE_URL\n"
    )


def test_unknown_names(environ: dict[str, str]) -> None:
    assert falcon_here(environ, "run", "--pipeline", "sum").stderr == (
        "Error: no process is in a pipeline 'sum'; there is: sums, doubles\n"
    )
    assert falcon_here(environ, "run", "--process", "sumup").stderr.startswith("Error: there is no process 'sumup'")


def test_without_its_server_nothing_is_started_there_and_that_is_said(
    environ: dict[str, str], land: Callable[..., None], tmp_path: Path
) -> None:
    land(5, 1)
    port, root = free_port(), Path(environ["FALCON_ENTITY_DEFS"])
    for file in root.iterdir():
        text = file.read_text()
        (tmp_path / file.name).write_text(text.replace('"local[2]"', f'"sc://127.0.0.1:{port}"'))
    before = known_instances(environ)
    done = falcon_here(environ | {"FALCON_ENTITY_DEFS": str(tmp_path)}, "run", "--process", "sum-up")
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: what runs on primary was left out: cluster 'primary': no Spark Connect server answers at "
        f"sc://127.0.0.1:{port} (Connection refused): start it with `falcon spark start --port {port}`, or fix "
        "interfaces.execute.endpoint\n"
    )
    assert known_instances(environ) == before


def known_instances(environ: dict[str, str]) -> str:
    return falcon_here(environ, "ledger", "status").stdout.partition("Process instances")[2]


def test_ctrl_c_leaves_nothing_half_done(environ: dict[str, str], land: Callable[..., None]) -> None:
    home = Path(environ["FALCON_HOME"])
    land(3, 5)
    hold = home / "hold"
    hold.touch()
    running = subprocess.Popen(
        [FALCON, "run", "--until", "2013-01-01T03:00Z"],
        env=environ,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def held() -> bool:
        assert running.poll() is None
        return (home / "held").exists()

    wait_until(held, 90)
    running.send_signal(signal.SIGINT)
    hold.unlink()
    out, err = running.communicate(timeout=90)
    assert "Interrupted: finished instances are recorded, the others run the next time." in out
    assert err == ""
    assert running.returncode == 130
    assert run_states(environ)[-1] == ("CANCELED", "the process of the run was asked to end")
    done = falcon(environ, "run", "--until", "2013-01-01T03:00Z")
    assert done.returncode == 0, done.stdout
    assert there(environ, "hourly") == there(environ, "doubled") == ["00", "01", "03", "04"]
    staging = home / "data/primary/.falcon/staging"
    assert [one.name for one in staging.iterdir() if one.name != "replaced" and any(one.iterdir())] == []
