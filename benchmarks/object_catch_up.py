"""The catch-up on an object store, a real S3 server on loopback: by folders, and by Spark's own connector."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import s3fs

from benchmarks.catch_up import LOOP, RUNS, run
from benchmarks.flights import HOURS
from benchmarks.measure import Line, Steps, alternate, line_of
from tests.s3_server import ENVIRON, KEY, SECRET, s3_server
from tests.s3a import s3a_confs
from tests.spark_servers import connect_server

STAGED_BAR, TOGETHER_BAR, NATIVE_BAR = 1.0, 0.2, 1.2
ROUNDS = 3
BUCKET = "lake"


def measure() -> list[Line]:
    """Both sides read and write the same server; the loop's Spark has a connector to it each time."""
    with tempfile.TemporaryDirectory() as name, s3_server(Path(name)) as url:
        folder = Path(name)
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities", **ENVIRON}
        run(["benchmarks.flights"], environ)
        store = s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs={"endpoint_url": url}, use_listings_cache=False)
        store.mkdir(BUCKET)
        store.put(f"{folder}/home/data/raw", f"{BUCKET}/raw", recursive=True)
        s3a = {"endpoint": url, "path.style.access": "true", "access.key": KEY, "secret.key": SECRET}
        confs = {**s3a_confs(folder), **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}}
        lines = [
            _line("by folders", environ, store, url, "local[2]", confs, STAGED_BAR),
            _line("by folders and one query", environ, store, url, "local[2]", confs, TOGETHER_BAR, HOURS),
        ]
        with connect_server(folder, "connect", confs) as server:
            foreign = f"{server.interfaces.execute.endpoint}/;use_ssl=false"  # else it is that of falcon spark start
            return [*lines, _line("by Spark's connector", environ, store, url, foreign, confs, NATIVE_BAR)]


def _line(
    how: str,
    environ: Mapping[str, str],
    store: s3fs.S3FileSystem,
    url: str,
    execute: str,
    confs: Mapping[str, str],
    bar: float,
    parallel: int = 2,
) -> Line:
    _declare(Path(environ["FALCON_ENTITY_DEFS"], "flights.yaml"), url, execute)

    def steps(*command: str) -> Steps:
        if store.exists(f"{BUCKET}/delays"):
            store.rm(f"{BUCKET}/delays", recursive=True)
        found: Steps = json.loads(run(list(command), environ).splitlines()[-1])
        return found

    loop = (LOOP, f"s3a://{BUCKET}", execute, json.dumps(confs))
    rounds = list(alternate(ROUNDS, lambda: steps(RUNS, str(parallel)), lambda: steps(*loop)))
    return line_of(f"catch up {HOURS} instances on S3, {how}", rounds, ["work"], bar)


def _declare(definitions: Path, url: str, execute: str) -> None:
    """Puts the cluster's data on the server, and its Spark there."""
    before, _, rest = definitions.read_text().partition("interfaces: ")
    options = {"key": {"env": "LAKE_KEY"}, "secret": {"env": "LAKE_SECRET"}, "client_kwargs": {"endpoint_url": url}}
    interfaces = {"write": {"endpoint": f"s3://{BUCKET}"}, "execute": {"endpoint": execute}}
    after = rest[rest.index("properties: ") :]
    text = f"interfaces: {json.dumps(interfaces)}\nstorage_options: {json.dumps(options)}\n{after}"
    before = before.partition("storage_options: ")[0]
    definitions.write_text(before + text)
