"""``falcon run`` is killed between what it does for many instances at once: the next one does what is left, once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg2
import pyarrow.dataset as ds
import pytest

from tests.processes import FALCON, environ_with
from tests.servers import libpq_url, new_database, url_of

pytestmark = pytest.mark.soak
HOURS = 48
DEFINITIONS = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
---
kind: feed
name: numbers
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/numbers/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-03T00:00Z}}]
---
kind: process
name: count
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-03T00:00Z}}]
parallel: 2
frequency: hours(1)
outputs: [{name: numbers, feed: numbers, instance: "now(0,0)"}]
workflow: {engine: python, path: count.py}
schedule: true
"""
WORK = """\
import time
from pathlib import Path
import pyarrow as pa
def run(inputs, instance):
    time.sleep(0.02)  # this is the work
    with Path(__file__).with_name("journal").open("a") as lines:
        lines.write(f"{instance.nominal_time:%Y-%m-%d-%H}\\n")
    return pa.table({"hour": [f"{instance.nominal_time:%Y-%m-%d-%H}"]})
"""
KILLED = """\
import importlib, os, signal, sys
from itertools import count
from falcon_assets.surface.cli.main import main
module, kind, method, when = sys.argv[1:]
owner = getattr(importlib.import_module(f"falcon_assets.instances.runs.{module}"), kind)
original, numbers = getattr(owner, method), count(1)
def struck(self, *given):
    strikes = any(given) and next(numbers) == 2
    if strikes and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    returned = original(self, *given)
    if strikes:
        os.kill(os.getpid(), signal.SIGKILL)
    return returned
setattr(owner, method, struck)
sys.argv = ["falcon", "run"]
main()
"""
STRIKES = {
    "claimed, and not begun": ("claims_ahead", "ClaimsAhead", "_claim", "after"),
    "published, and not told": ("outcomes", "Outcomes", "wait", "after"),
    "told, and still claimed": ("run_locks", "RunLocks", "release", "before"),
}


@dataclass(frozen=True)
class Place:
    folder: Path
    environ: dict[str, str]

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        connection = psycopg2.connect(libpq_url(self.environ["FALCON_DATABASE_URL"]))
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        finally:
            connection.close()

    def told(self) -> Counter[object]:
        """How often the log says that an instance was made."""
        rows = self.ask("SELECT partition FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION'")
        return Counter(f"{datetime.fromisoformat(str(row[0])):%Y-%m-%d-%H}" for row in rows)

    def published(self) -> set[str]:
        return {flag.parent.name for flag in self.folder.glob("home/data/numbers/*/_SUCCESS")}

    def computed(self) -> Counter[str]:
        return Counter((self.folder / "entities/journal").read_text().split())


@pytest.fixture
def place(postgres: str, template: str, tmp_path: Path) -> Iterator[Place]:
    entities = tmp_path / "entities"
    entities.mkdir()
    (entities / "all.yaml").write_text(DEFINITIONS)
    (entities / "count.py").write_text(WORK)
    own = {"FALCON_HOME": f"{tmp_path}/home", "FALCON_ENTITY_DEFS": f"{entities}"}
    with new_database(postgres, template) as name:
        own["FALCON_DATABASE_URL"] = url_of(postgres, name)
        yield Place(tmp_path, environ_with(**own, FALCON_CLOCK="2013-01-03T00:00Z"))


@pytest.mark.parametrize("strike", STRIKES)
def test_the_next_run_does_what_is_left(place: Place, strike: str) -> None:
    command = [sys.executable, "-c", KILLED, *STRIKES[strike]]
    killed = subprocess.run(command, env=place.environ, check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    told, published, computed = place.told(), place.published(), place.computed()
    assert told.keys() <= published <= computed.keys()
    assert len(computed) < HOURS
    if strike.startswith("published"):
        assert published - told.keys()
    again = subprocess.run([FALCON, "run"], env=place.environ, check=False, capture_output=True, text=True)
    assert again.returncode == 0, again.stdout + again.stderr
    states = place.ask("SELECT state, count(*) FROM falcon.process_instances GROUP BY state")
    assert states == [("SUCCEEDED", HOURS)]
    assert set(place.told().values()) == {1}
    assert len(place.told()) == HOURS
    after = place.computed()
    assert {hour: after[hour] for hour in told} == dict.fromkeys(told, 1)
    assert set(after.values()) <= {1, 2}
    assert {hour for hour, times in after.items() if times == 2} <= computed.keys() - told.keys()
    for hour in after:
        rows = ds.dataset(f"{place.folder}/home/data/numbers/{hour}", format="parquet").to_table()
        assert rows.to_pydict() == {"hour": [hour]}
    assert (
        place.ask(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database "
            "WHERE datname = current_database())"
        )
        == []
    )
