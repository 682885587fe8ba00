"""Builders of valid entities for tests: say only what the test is about."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import yaml

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.workloads import ProcessWorkload

VALIDITY = {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}
SPARK = {
    "spark.app.name": "falcon-tests",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.warehouse.dir": f"{tempfile.gettempdir()}/falcon-tests-warehouse",
}
"""What a cluster says about Spark: where all say the same, the tests of a process share one warm session."""


def cluster_yaml(name: str = "primary", **overrides: Any) -> str:
    """A document with a cluster whose data lives in ``data/NAME``, on the session that the tests share."""
    interfaces = {"write": {"endpoint": f"data/{name}"}, "execute": {"endpoint": "local[2]"}}
    declared = {"kind": "cluster", "name": name, "interfaces": interfaces, "properties": SPARK}
    return _document(declared, **overrides)


def on(cluster: str, **more: Any) -> dict[str, Any]:
    """The cluster of a feed or process, for 2013."""
    return {"name": cluster, "validity": VALIDITY, **more}


def datasource_yaml(name: str = "shop", **overrides: Any) -> str:
    """A document with a PostgreSQL that nobody reaches, to read and to write."""
    interfaces = {"write": {"endpoint": "postgresql://127.0.0.1:9/shop", "credential": {"user": "falcon"}}}
    return _document({"kind": "datasource", "name": name, "type": "postgresql", "interfaces": interfaces}, **overrides)


def feed_yaml(name: str, *clusters: dict[str, Any], **overrides: Any) -> str:
    """A document with an hourly feed on ``primary``, or on these clusters, in folders of its name."""
    data = f"/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"
    declared = {"kind": "feed", "name": name, "frequency": "hours(1)", "locations": {"data": data}}
    return _document(declared, clusters=list(clusters) or [on("primary")], **overrides)


def process_yaml(name: str, reads: str | None, makes: str | None, *clusters: dict[str, Any], **overrides: Any) -> str:
    """A document with an hourly process on ``primary``, or on these clusters, by ``a.sql`` from feed to feed."""
    declared: dict[str, Any] = {"kind": "process", "name": name, "frequency": "hours(1)"}
    if reads:
        declared["inputs"] = [{"name": "rows", "feed": reads, "start": "now(0,0)", "end": "now(0,0)"}]
    if makes:
        declared["outputs"] = [{"name": "out", "feed": makes, "instance": "now(0,0)"}]
    declared["workflow"] = {"engine": "spark-sql", "path": "a.sql"}
    return _document(declared, clusters=list(clusters) or [on("primary")], **overrides)


def _document(declared: dict[str, Any], **overrides: Any) -> str:
    return "---\n" + yaml.safe_dump({**declared, **overrides}, sort_keys=False)


def make_cluster(**overrides: Any) -> Cluster:
    """A local cluster named ``primary`` whose data lives in ``data/primary``."""
    declared = {
        "kind": "cluster",
        "name": "primary",
        "colo": "east",
        "interfaces": {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[2]"}},
    }
    return Cluster.model_validate({**declared, **overrides})


def make_feed(**overrides: Any) -> Feed:
    """An hourly JSON feed named ``raw-flights`` on ``primary``, valid in 2013, complete with ``_SUCCESS``."""
    declared = {
        "kind": "feed",
        "name": "raw-flights",
        "frequency": "hours(1)",
        "availability_flag": "_SUCCESS",
        "format": "json",
        "locations": {"data": "/raw/flights/${YEAR}/${MONTH}/${DAY}/${HOUR}"},
        "clusters": [{"name": "primary", "validity": VALIDITY}],
    }
    return Feed.model_validate({**declared, **overrides})


def make_process(**overrides: Any) -> Process:
    """An hourly SQL process named ``hourly-delays`` on ``primary`` from ``raw-flights`` to ``delays``."""
    declared = {
        "kind": "process",
        "name": "hourly-delays",
        "frequency": "hours(1)",
        "clusters": [{"name": "primary", "validity": VALIDITY}],
        "inputs": [{"name": "flights", "feed": "raw-flights", "start": "now(0,0)", "end": "now(0,0)"}],
        "outputs": [{"name": "delays", "feed": "delays", "instance": "now(0,0)"}],
        "workflow": {"engine": "spark-sql", "path": "workflows/hourly_delays.sql"},
    }
    return Process.model_validate({**declared, **overrides})


def workload_of(process: Process, *feeds: Feed, cluster: str = "primary") -> ProcessWorkload:
    """The process on that cluster; feeds of its outputs that are not given have the same instances."""
    clusters = [{"name": one.name, "validity": one.validity.model_dump()} for one in process.clusters]
    steps = {"frequency": str(process.frequency), "timezone": process.timezone, "clusters": clusters}
    written = {one.feed: make_feed(name=one.feed, **steps) for one in process.outputs}
    return ProcessWorkload(process, cluster, {**written, **{feed.name: feed for feed in feeds}})


def land_rows(folder: Path, *rows: dict[str, object]) -> None:
    """Lands rows in a folder in place of those there, and says that it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "_SUCCESS").touch()
