"""Builds what a workflow needs, below one folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.task import WorkflowTask
from falcon_assets.compute.spark.data.dataset import InputData, OutputData
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.model.workflow import Workflow
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import count_files
from tests.builders import make_cluster, make_feed
from tests.listener import LISTENER_HOME

CONFS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "512m",
}
SECRET_KEY, SECRET = "spark.hadoop.fs.s3a.secret.key", "hush: hush=ü\\"
"""A setting of the local cluster that must be seen nowhere."""
NOMINAL = datetime(2013, 1, 1, 5, tzinfo=UTC)


def cluster_on(endpoint: str, **properties: str) -> Cluster:
    common = {key: value for key, value in CONFS.items() if key.startswith("spark.sql.") or "sc://" not in endpoint}
    return make_cluster(
        interfaces={"write": {"endpoint": "data/primary"}, "execute": {"endpoint": endpoint}},
        properties={**common, **properties},
    )


@dataclass(frozen=True)
class Sandbox:
    """Builds what a workflow needs below one folder."""

    folder: Path
    cluster: Cluster

    @property
    def executor(self) -> SparkExecutor:
        return SparkExecutor(self.cluster, lambda: str(self.folder.parent), LISTENER_HOME)

    def session(self) -> SparkSession:
        return self.executor.session()

    @staticmethod
    def workflow(**declared: Any) -> Workflow:
        return Process.model_validate({**_PROCESS, "workflow": declared}).workflow

    def file(self, path: str, text: str) -> Path:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def input(self, name: str, *paths: str, partition: str | None = None, **feed: Any) -> InputData:
        urls = tuple((self.folder / path).as_uri() for path in paths)
        return InputData(name, make_feed(name=f"{name}-feed", **feed), urls, partition)

    def counted(self, name: str, *paths: str, **feed: Any) -> InputData:
        """An input whose files were counted, as those of every process instance are."""
        data = self.input(name, **feed)
        local = {"write": {"endpoint": f"file://{self.folder}"}, "execute": {"endpoint": "local[2]"}}
        store = ClusterStore(make_cluster(interfaces=local), self.folder, {})
        return replace(
            data,
            urls=tuple(store.url(path) for path in paths),
            counted=tuple(count_files(store, path, data.feed.availability_flag)[1] for path in paths),
        )

    def output(self, name: str, **feed: Any) -> OutputData:
        return OutputData(
            name, make_feed(name=f"{name}-feed", **{"format": "parquet", **feed}), (self.folder / "out" / name).as_uri()
        )

    def task(self, workflow: Workflow, **overrides: Any) -> WorkflowTask:
        given: dict[str, Any] = {
            "process": "hourly",
            "executor": self.executor,
            "nominal": NOMINAL,
            "workflow": workflow,
            "entity_root": self.folder,
            "inputs": (),
            "outputs": (self.output("delays"),),
            "properties": {},
            "working": str(self.folder / "working"),
            "run_id": "run",
        }
        return WorkflowTask(**{**given, **overrides})

    def rows(self, name: str = "delays", file_format: str = "parquet") -> list[tuple[Any, ...]]:
        frame = self.session().read.format(file_format).load((self.folder / "out" / name).as_uri())
        return sorted(tuple(row) for row in frame.collect())


_PROCESS = {
    "kind": "process",
    "name": "hourly",
    "frequency": "hours(1)",
    "clusters": [{"name": "primary", "validity": {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}}],
    "outputs": [{"name": "delays", "feed": "delays", "instance": "now(0,0)"}],
}
