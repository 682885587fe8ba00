"""Settings of Spark in the properties of processes: what others share cannot have all of them."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.processes.variables import workflows
from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.spark_settings import is_of_application
from falcon_assets.model.workflow import Workflow


def check_spark_settings(definitions: Definitions) -> Iterator[Problem]:
    """Settings that Spark reads when it starts, on processes that run in a Spark that is there already."""
    for process in definitions.processes.values():
        settings = [key for key in process.entity.properties if key.startswith("spark.")]
        for entry in process.entity.clusters if settings else ():
            cluster = definitions.clusters.get(entry.name)
            for _, workflow in workflows(process.entity) if cluster else ():
                endpoint = cluster.entity.interfaces.execute.endpoint if cluster else ""
                for key in settings:
                    why = _why_not(key, workflow, entry.name, is_server=endpoint.startswith("sc://"))
                    if why is not None:
                        yield process.problem(("properties", key), why, at_key=True)


def _why_not(key: str, workflow: Workflow, cluster: str, *, is_server: bool) -> str | None:
    fixed = f"Spark reads {key} when it starts, and"
    where = f"declare it in the properties of the cluster {cluster!r}"
    if workflow.shares_session:
        if not is_of_application(key):
            return None
        return f"{fixed} {workflow.engine} runs in the session of its cluster: {where}, or run a program (spark-submit)"
    if is_server and (is_of_application(key) or not key.startswith("spark.sql.")):
        return f"{fixed} a program on the Spark Connect server of cluster {cluster!r} only talks to it: set it there"
    return None
