"""Checks of the executors of clusters: whether they answer, and say how busy they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.doctor.side_by_side import side_by_side
from falcon_assets.errors import count_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import ClusterExecutor

_SECONDS = 9.0
"""Less than a check may take."""


def check_executors(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the executors that clusters declare answer now."""
    store = context.entities_if_sound()
    asked = {
        (cluster.name, one.name): partial(_judged, one, cluster.on(one.name), context.environ, context.settings.home)
        for cluster in (store.clusters.values() if store else ())
        for one in cluster.executors
    }
    answers = side_by_side(asked, _SECONDS)
    for cluster_name, name in asked:
        late = problem(
            f"{_subject(cluster_name, name)} did not answer within {_SECONDS:.0f} s", "check the server that it is on"
        )
        yield answers.get((cluster_name, name), late)


def _judged(executor: ClusterExecutor, cluster: Cluster, environ: Mapping[str, str], home: Path) -> Diagnosis:
    from falcon_assets.compute.spark.endpoints.load import (  # noqa: PLC0415 - loads Spark's client
        NoPageError,
        asked,
        page_of,
    )
    from falcon_assets.compute.spark.endpoints.probing import probe  # noqa: PLC0415 - likewise
    from falcon_assets.compute.spark.provisioned import ProvisionedSpark  # noqa: PLC0415 - likewise

    subject = _subject(cluster.name, executor.name)
    if executor.provision and not ProvisionedSpark(home, cluster.name, executor).is_running:
        return ok(f"{subject} is stopped, and is started when work waits for it")
    answer = probe(executor, cluster, environ)
    if answer.problem:
        return problem(f"{subject}: {answer.problem}", "start it, or fix its endpoint: others do its work meanwhile")
    if answer.load is not None:
        return ok(f"{subject}: {answer.load.free} of {count_of(answer.load.cores, 'core')} are free")
    if pages := page_of(executor, cluster, environ):
        try:
            asked(executor, pages)
        except NoPageError as error:
            return warning(
                f"{subject}: it is not known how busy it is: {error}", f"fix ui of the executor {executor.name!r}"
            )
    return ok(f"{subject} is there")


def _subject(cluster: str, executor: str) -> str:
    return f"executor {executor!r} of cluster {cluster!r}"
