"""Probes of executors: whether they answer, and how busy they are, within seconds."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from falcon_assets.compute.spark.endpoints.load import NoPageError, asked, page_of
from falcon_assets.compute.spark.endpoints.reachable import silence_at, silence_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import ClusterExecutor
from falcon_assets.planning.executor_health import Answer

_KUBERNETES = "k8s://"


def probe(executor: ClusterExecutor, cluster: Cluster, environ: Mapping[str, str], own_application: str = "") -> Answer:
    """Asks an executor; a web page that does not answer is no problem of the executor, except where only it can answer.

    The cores of ``own_application``, the session of this process, count as free.
    """
    if problem := silence_at(executor.endpoint) or _silence_of_kubernetes(executor.endpoint):
        return Answer(problem)
    pages = page_of(executor, cluster, environ)
    try:
        return asked(executor, pages, own_application) if pages else Answer()
    except NoPageError as error:
        return Answer(f"YARN does not answer ({error})" if executor.endpoint == "yarn" else "")


def _silence_of_kubernetes(endpoint: str) -> str:
    if not endpoint.startswith(_KUBERNETES):
        return ""
    server = endpoint.removeprefix(_KUBERNETES)
    url = urlsplit(server if "://" in server else f"https://{server}")
    why = silence_of(url.hostname or "", url.port or (80 if url.scheme == "http" else 443))
    return f"no Kubernetes answers at {endpoint} ({why})" if why else ""
