"""How busy a Spark is: what the web pages of masters, ResourceManagers and drivers say, in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import requests

from falcon_assets.compute.spark.endpoints.confs import is_connect
from falcon_assets.compute.spark.endpoints.standalone import is_standalone, masters
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import ClusterExecutor
from falcon_assets.planning.executor_health import Answer, Load

_SECONDS = 3.0
_MASTER_PORT, _YARN_PORT = 8080, 8088
_ADDRESS, _HOST, _POLICY = (
    f"yarn.{name}" for name in ("resourcemanager.webapp.address", "resourcemanager.hostname", "http.policy")
)
_PROPERTY = f"spark.hadoop.{_ADDRESS}"


class NoPageError(Exception):
    """Nothing in JSON is at a web page."""


def page_of(executor: ClusterExecutor, cluster: Cluster, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the URLs of the pages to ask, of which one answers; empty: none is known."""
    if executor.ui:
        return (executor.ui.rstrip("/"),)
    if is_standalone(executor.endpoint):
        return _pages_of_masters(executor.endpoint)
    if executor.endpoint == "yarn":
        found = cluster.properties.get(_PROPERTY) or _from_yarn_site(environ)
        return (found if "://" in found else f"http://{found}",) if found else ()
    return ()


def has_workers(endpoint: str, ui: str | None) -> bool:
    """Whether a standalone cluster has a worker; also where its pages do not say it."""
    pages = (ui,) if ui else _pages_of_masters(endpoint)
    try:
        return bool(_first_alive(pages)["aliveworkers"])
    except (NoPageError, KeyError, TypeError):
        return True


def asked(executor: ClusterExecutor, pages: tuple[str, ...], own_application: str = "") -> Answer:
    """Asks the pages; the cores of ``own_application``, which this process has, count as free.

    Raises:
        NoPageError: none of them answers, or with something else.
    """
    try:
        if is_standalone(executor.endpoint):
            return _master(_first_alive(pages), own_application)
        if executor.endpoint == "yarn":
            return _yarn(_get(f"{pages[0]}/ws/v1/cluster/metrics")["clusterMetrics"])
        if is_connect(executor.endpoint):
            return _driver(pages[0])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NoPageError(f"{', '.join(pages)}: what is there is no page of Spark or YARN") from error
    return Answer()


def _pages_of_masters(endpoint: str) -> tuple[str, ...]:
    return tuple(f"http://{host}:{_MASTER_PORT}" for host, _ in masters(endpoint))


def _first_alive(pages: tuple[str, ...]) -> Any:
    """Of several masters one is alive, the others are its standbys."""
    problems = []
    for page in pages:
        try:
            state = _get(f"{page}/json/")
        except NoPageError as error:
            problems.append(str(error))
        else:
            if state["status"] == "ALIVE":
                return state
            problems.append(f"{page}: {state['status']}")
    raise NoPageError("; ".join(problems))


def _master(state: Any, own_application: str) -> Answer:
    if not state["aliveworkers"]:
        return Answer("the Spark master has no worker", Load(0, 0, 0))
    applications = state["activeapps"]
    mine = sum(int(one["cores"]) for one in applications if one["id"] == own_application)
    waiting = sum(one["state"] == "WAITING" and one["id"] != own_application for one in applications)
    cores = int(state["cores"])
    return Answer(load=Load(cores, cores - int(state["coresused"]) + mine, waiting))


def _yarn(metrics: Any) -> Answer:
    if not metrics["activeNodes"]:
        return Answer("YARN has no active node", Load(0, 0, 0))
    cores, free = int(metrics["totalVirtualCores"]), int(metrics["availableVirtualCores"])
    return Answer(load=Load(cores, max(free, 0), int(metrics["appsPending"])))


def _driver(page: str) -> Answer:
    """Of a Connect server, whose clients share its cores."""
    (application, *_) = _get(f"{page}/api/v1/applications")
    executors = _get(f"{page}/api/v1/applications/{quote(application['id'])}/executors")
    cores = sum(int(one["totalCores"]) for one in executors)
    active = sum(int(one["activeTasks"]) for one in executors)
    return Answer(load=Load(cores, max(cores - active, 0), 0))


def _get(url: str) -> Any:
    try:
        answer = requests.get(url, timeout=_SECONDS, headers={"Accept": "application/json"})
        if not answer.ok:
            raise NoPageError(f"{url}: answers {answer.status_code}")
        return answer.json()
    except requests.JSONDecodeError as error:
        raise NoPageError(f"{url}: is no JSON") from error
    except requests.RequestException as error:
        raise NoPageError(f"{url}: does not answer") from error


def _from_yarn_site(environ: Mapping[str, str]) -> str:
    folder = environ.get("YARN_CONF_DIR") or environ.get("HADOOP_CONF_DIR")
    if not folder:
        return ""
    try:
        found = ElementTree.parse(Path(folder, "yarn-site.xml")).iter("property")  # noqa: S314 - of the administrator
        said = {one.findtext("name", "").strip(): one.findtext("value", "").strip() for one in found}
    except (OSError, ElementTree.ParseError):
        return ""
    scheme, port = ("https", 8090) if said.get(_POLICY) == "HTTPS_ONLY" else ("http", _YARN_PORT)
    host = said.get(_HOST, "")
    address = said.get(_ADDRESS, "").replace(f"${{{_HOST}}}", host) or (f"{host}:{port}" if host else "")
    return f"{scheme}://{address}" if address and "${" not in address else ""
