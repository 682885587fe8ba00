"""The world in the words of entity definitions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.simulation.world import Feed, Process, World


@dataclass(frozen=True)
class Work:
    """What computes the instances.

    Attributes:
        execute: Where the clusters compute.
        properties: What the clusters declare for it.
        module: Has the workflows ``normal`` and ``late``.
    """

    execute: str
    properties: Mapping[str, str]
    module: str


SPARK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "512m",
    # The work is nothing: what would make it faster costs more than it brings.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # One session for both clusters: another configuration would need another.
    "spark.app.name": "simulation",
}
IN_PROCESS = Work("local[2]", SPARK, "tests.simulation.workflow")


def on_files(cluster: str) -> dict[str, Any]:
    """A cluster whose data is below FALCON_HOME."""
    return {"name": cluster, "interfaces": {"write": {"endpoint": f"data/{cluster}"}}}


def in_folders(feed: Feed) -> dict[str, Any]:
    """A feed of texts in folders with flags."""
    return {"availability_flag": "_SUCCESS", "format": "text", "locations": {"data": f"/{feed.name}/{nominal(feed)}"}}


def entities(
    world: World,
    home: Path,
    failures: Collection[str] = (),
    work: Work = IN_PROCESS,
    place: Callable[[str], dict[str, Any]] = on_files,
    keep: Collection[str] = (),
    stored: Callable[[Feed], dict[str, Any]] = in_folders,
) -> str:
    """All definitions as YAML.

    Args:
        world: What is declared.
        home: FALCON_HOME.
        failures: The runs that are to fail.
        work: What computes.
        place: Where the data of a cluster lies.
        keep: The feeds that keep versions.
        stored: How the instances of a feed lie there.
    """
    clusters = sorted({cluster for process in world.processes for cluster in process.clusters})
    places = {"spark.sql.warehouse.dir": str(home / "warehouse"), "counters": str(home / "counters")}
    documents: list[dict[str, Any]] = [
        {
            "kind": "cluster",
            **place(name),
            "interfaces": {**place(name)["interfaces"], "execute": {"endpoint": work.execute}},
            "properties": {**work.properties, **places},
        }
        for name in clusters
    ]
    kept = {name: {"versions": {"keep": 2}} for name in keep}
    used = [feed for feed in world.feeds if _users(world, feed)]
    documents += [_feed(world, feed) | stored(feed) | kept.get(feed.name, {}) for feed in used]
    documents += [_process(process, failures, work.module) for process in world.processes]
    return yaml.safe_dump_all(documents, sort_keys=False)


def entities_in_tables(registry: str) -> Callable[..., str]:
    """As :func:`entities`, with all data in tables: both clusters have one registry, each feed has a table for each.

    Its producer makes it. Other tests that have the registry, too, get tables of other names.
    """
    run = uuid.uuid4().hex[:8]

    def in_table(feed: Feed) -> dict[str, Any]:
        uri = f"catalog:default:{feed.name}_{run}_${{cluster.name}}#ds={nominal(feed)}"
        return {"format": "parquet", "schema": "value string", "table": {"uri": uri, "create": True}}

    def place(cluster: str) -> dict[str, Any]:
        files = on_files(cluster)
        return {**files, "interfaces": {**files["interfaces"], "registry": {"endpoint": registry}}}

    return partial(entities, place=place, stored=in_table)


def nominal(feed: Feed) -> str:
    """The nominal time in the names of its instances: feeds of days have it in their own zone, without hours."""
    fields = ["YEAR", "MONTH", "DAY"] + ["HOUR", "MINUTE"] * (feed.every[0] != "days")
    return "-".join(f"${{{field}}}" for field in fields)


def _feed(world: World, feed: Feed) -> dict[str, Any]:
    return {
        "kind": "feed",
        "name": feed.name,
        "frequency": f"{feed.every[0]}({feed.every[1]})",
        "timezone": feed.zone,
        "late_arrival": {"cut_off": _duration(feed.cut_off)},
        "clusters": [
            {"name": name, "validity": _validity(feed)}
            for name in sorted({one for p in _users(world, feed) for one in p.clusters})
        ],
    }


def _users(world: World, feed: Feed) -> list[Process]:
    return [
        process
        for process in world.processes
        if feed.name in [one.feed for one in process.inputs] + [name for name, _ in process.outputs]
    ]


def _process(process: Process, failures: Collection[str], module: str) -> dict[str, Any]:
    late = process.late and {
        "policy": process.late.policy,
        "delay": _duration(process.late.delay),
        "inputs": [
            {"input": name, **({"workflow": _workflow(module, "late")} if own else {})}
            for name, own in process.late.inputs
        ],
    }
    return {
        "kind": "process",
        "name": process.name,
        "pipelines": [process.pipeline],
        "clusters": [{"name": name, "validity": _validity(process)} for name in process.clusters],
        "parallel": process.parallel,
        "order": process.order,
        "timeout": _duration(process.timeout),
        "frequency": f"{process.every[0]}({process.every[1]})",
        "timezone": process.zone,
        "inputs": [
            {"name": one.name, "feed": one.feed, "start": one.start, "end": one.end, "optional": one.optional}
            for one in process.inputs
        ],
        "outputs": [{"name": "out", "feed": feed, "instance": expression} for feed, expression in process.outputs],
        "workflow": _workflow(module, "normal"),
        "retry": {
            "policy": process.retry.policy,
            "delay": _duration(process.retry.delay),
            "attempts": process.retry.attempts,
            "on_timeout": process.retry.on_timeout,
        },
        **({"late_process": late} if late else {}),
        "properties": {"fail": " ".join(sorted(run for run in failures if run.startswith(f"{process.name}@")))},
        "schedule": True,
    }


def _workflow(module: str, name: str) -> dict[str, str]:
    return {"engine": "pyspark", "function": f"{module}:{name}"}


def _validity(entity: Feed | Process) -> dict[str, str]:
    return {"start": f"{entity.start:%Y-%m-%dT%H:%MZ}", "end": f"{entity.end:%Y-%m-%dT%H:%MZ}"}


def _duration(length: timedelta) -> str:
    return f"minutes({int(length.total_seconds()) // 60})"
