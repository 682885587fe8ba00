"""Asks both sides in turn: ``python -m benchmarks.instance_lists_loop`` prints the seconds of each answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy

from benchmarks.instance_lists import FAILED_EACH, FIRST, INSTANCES, LAST, PROCESSES
from benchmarks.instance_lists_stock import KEYS
from falcon_assets.features.triage.operations import triage
from falcon_assets.instances.views.listing import instance_status, latest, list_instances, summarize_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation, open_installation

ROUNDS = {"status": 5, "list one": 5, "list": 2, "triage": 5, "summary": 2}
"""What is asked of 20 assets takes Dagster minutes."""
STARTS = 5
"""How often whole commands are started."""
PORT = 3917
GIVE_UP_SECONDS = 120
FALCON = ["-c", "from falcon_assets.surface.cli.main import main; main()"]
COMMANDS = ("--help", "instance --help", "instance status", "instance list")
LATEST = [format_instant(parse_instant(LAST) - timedelta(minutes=5 * number)) for number in range(10)]
EVENTS = """\
INSERT INTO event_logs (run_id, event, dagster_event_type, timestamp, asset_key, partition)
SELECT run_id, replace(replace(event, :known, process), :partition, named), dagster_event_type, timestamp,
       replace(asset_key, :known, process), named
FROM (SELECT * FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION' ORDER BY id LIMIT 1) AS event,
     (SELECT 'work-' || lpad(p::text, 2, '0') AS process FROM generate_series(0, :processes - 1) AS p) AS processes,
     (SELECT to_char(CAST(:first AS timestamptz) AT TIME ZONE 'UTC' + n * interval '5 minutes',
                     'YYYY-MM-DD"T"HH24:MI"Z"') AS named
      FROM generate_series(0, :instances - 1) AS n WHERE n % :failed_each > 0) AS partitions
"""
ROWS = """\
INSERT INTO falcon.process_instances
    (process, cluster, nominal, state, reason, attempt, failures, run_id, started, ended, event_id)
SELECT 'work-' || lpad(p::text, 2, '0'), 'primary', CAST(:first AS timestamptz) + n * interval '5 minutes',
       CASE WHEN n % :failed_each > 0 THEN 'SUCCEEDED' ELSE 'FAILED' END,
       CASE WHEN n % :failed_each > 0 THEN '' ELSE 'work.sql:1: [DIVIDE_BY_ZERO] Division by zero.' END,
       1, CASE WHEN n % :failed_each > 0 THEN 0 ELSE 1 END, 'run-' || n / 24, now(), now(), n
FROM generate_series(0, :processes - 1) AS p, generate_series(0, :instances - 1) AS n
WHERE p = 0 OR n < :instances - 1
"""
LAST_FAILED = "UPDATE falcon.process_instances SET state = 'FAILED', failures = 1 WHERE nominal = :last"
SETTLED = """\
INSERT INTO falcon.progress (process, cluster, timeline, first_open)
SELECT 'work-' || lpad(p::text, 2, '0'), 'primary', 'minutes(5) UTC 2013-01-01T00:00Z 2014-01-01T00:00Z', :last
FROM generate_series(0, :processes - 1) AS p
"""
"""As coordinators write down how far they are."""
FOLDED = "UPDATE falcon.fold SET event_id = (SELECT max(id) FROM event_logs)"
BY_PARTITION = (
    "{ assetNodes(assetKeys: %s) { latestMaterializationByPartition(partitions: %s) { partition timestamp } } }"
)
STATUSES = """{ assetNodes(assetKeys: %s) { assetPartitionStatuses {
    ... on TimePartitionStatuses { ranges { startKey endKey status } } } } }"""
STATS = "{ assetNodes(assetKeys: %s) { partitionStats { numMaterialized numFailed numPartitions } } }"


def main() -> None:
    """Both sides answer each question once before it is measured: Dagster keeps the statuses of partitions."""
    with open_installation() as installation, _webserver(installation):
        url = f"http://127.0.0.1:{PORT}/graphql"
        ask, one, all_of_them = partial(_asked, url), _keys(KEYS[:1]), _keys(KEYS)
        failed = (("state", "FAILED"),)
        questions: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "status": (
                lambda: instance_status(installation, latest(InstanceQuery(KEYS[0]))).items,
                lambda: ask(BY_PARTITION % (one, json.dumps(LATEST)))[0]["latestMaterializationByPartition"],
            ),
            "list one": (
                lambda: list_instances(installation, InstanceQuery(KEYS[0], filters=failed)).items,
                lambda: ask(STATUSES % one)[0]["assetPartitionStatuses"]["ranges"],
            ),
            "list": (
                lambda: list_instances(installation, InstanceQuery(filters=failed)).items,
                lambda: ask(STATUSES % all_of_them),
            ),
            "triage": (
                lambda: _depth(triage(installation, KEYS[-1], parse_instant(LAST)).as_data()),
                lambda: ask(BY_PARTITION % (all_of_them, json.dumps([LAST]))),
            ),
            "summary": (
                lambda: summarize_instances(installation, InstanceQuery()),
                lambda: ask(STATS % all_of_them),
            ),
        }
        expected = {
            "status": (10, 10),
            "list one": (100, 1_000),
            "list": (100, 20),
            "triage": (39, 20),
            "summary": (20, 20),
        }
        for name, (ours, plain) in questions.items():
            if (found := (len(ours()), len(plain()))) != expected[name]:
                raise SystemExit(f"{name}: {found} answers instead of {expected[name]}")
        seconds: dict[str, list[float]] = {}
        for name, (ours, plain) in questions.items():
            for _ in range(ROUNDS[name]):
                seconds.setdefault(name, []).append(_timed(ours))
                seconds.setdefault(f"GraphQL: {name}", []).append(_timed(plain))
        for command in COMMANDS * STARTS:
            arguments = [*command.split(), *([KEYS[0]] if command == "instance status" else [])]
            seconds.setdefault(command, []).append(_timed(partial(_run, arguments)))
    print(json.dumps(seconds))


def fill_ledger(installation: Installation) -> None:
    """As many rows in the ledger as materializations in Dagster, one of which Dagster made itself."""
    first = format_instant(parse_instant(FIRST))
    for name in KEYS:
        made = dg.AssetMaterialization(["primary", name], partition=first)
        installation.ledger.instance.report_runless_asset_event(made)
    numbers = {"processes": PROCESSES, "instances": INSTANCES, "failed_each": FAILED_EACH, "first": FIRST}
    last = {"last": parse_instant(LAST)}
    installation.ledger.catch_up()
    with installation.ledger.engine.begin() as connection:
        known = {"known": KEYS[0], "partition": first}
        connection.execute(sqlalchemy.text(EVENTS), numbers | known)
        connection.execute(sqlalchemy.text(ROWS), numbers)
        connection.execute(sqlalchemy.text(LAST_FAILED), last)
        connection.execute(sqlalchemy.text(SETTLED), last | numbers)
        connection.execute(sqlalchemy.text(FOLDED))
    with installation.ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sqlalchemy.text("VACUUM ANALYZE"))


@contextmanager
def _webserver(installation: Installation) -> Iterator[None]:
    """Dagster's own over the same database, as its documentation sets it up."""
    fill_ledger(installation)
    home = installation.settings.home / "stock"
    home.mkdir()
    (home / "dagster.yaml").write_text("storage: {postgres: {postgres_url: {env: STOCK_DATABASE}}}\n")
    environ = os.environ | {"DAGSTER_HOME": str(home), "STOCK_DATABASE": installation.ledger.url}
    command = [sys.executable, "-m", "dagster_webserver", "-m", "benchmarks.instance_lists_stock", "-p", str(PORT)]
    with Path(home, "webserver.log").open("wb") as log:
        server = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
    try:
        give_up = time.monotonic() + GIVE_UP_SECONDS
        while not _answers():
            if time.monotonic() > give_up or server.poll() is not None:
                raise SystemExit(Path(home, "webserver.log").read_text()[-2000:])
            time.sleep(0.5)
        yield
    finally:
        server.terminate()
        server.wait(60)


def _answers() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/server_info"):
            return True
    except OSError:
        return False


def _asked(url: str, query: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(url, json.dumps({"query": query}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        found = json.load(answer)
    if "errors" in found:
        raise SystemExit(str(found["errors"])[:2000])
    nodes: list[dict[str, Any]] = found["data"]["assetNodes"]
    return nodes


def _depth(cause: dict[str, Any]) -> list[dict[str, Any]]:
    """The instance and what it waits for, down to the first cause."""
    return [cause, *(_depth(cause["causes"][0]) if cause["causes"] else [])]


def _keys(names: list[str]) -> str:
    return "[" + ", ".join(f'{{path: ["primary", "{name}"]}}' for name in names) + "]"


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _run(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *FALCON, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main()
