"""Has Dagster's webserver reload code locations after changes of definitions, without a restart."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

from falcon_assets.errors import FalconError, SettingsError, printable
from falcon_assets.operations.server_tokens import kept_token

_CONNECT_SECONDS = 10
_RELOAD_SECONDS = 120
_LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError { __typename
  ... on PythonError { message }
  ... on RepositoryLocation { repositories { allTopLevelResourceDetails { name } } } } } } } }
"""
_RELOAD = """
mutation Reload($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) { __typename
  ... on WorkspaceLocationEntry { locationOrLoadError { ... on PythonError { message } } }
  ... on ReloadNotSupported { message } ... on RepositoryLocationNotFound { message }
  ... on UnauthorizedError { message } ... on PythonError { message } } }
"""
_OURS = "spark__"
"""Prefix of the resources of code locations with entities, one per cluster."""


class WebserverError(FalconError):
    """Dagster's webserver cannot be reached or queried; the text has the reason in a few words."""


def loaded_code_locations(webserver: str, seconds: float) -> dict[str, str | None]:
    """Code locations with entities, or that did not load, with the error (None: none); raises WebserverError."""
    with _asking():
        return {entry["name"]: _message(entry["locationOrLoadError"] or {}) for entry in _locations(webserver, seconds)}


def reload_code_locations(webserver: str | None) -> str:
    """Reloads the code locations with entities, and those that did not load; returns a sentence, also on failure."""
    if webserver is None:
        return (
            "Dagster was not asked to reload the code location (FALCON_WEBSERVER_URL is empty); "
            "code servers of falcon serve do it by themselves"
        )
    later = "reload the code location in Dagster's UI, or restart it"
    try:
        with _asking():
            names = [entry["name"] for entry in _locations(webserver)]
            problems = {name: problem for name in names if (problem := _reload(webserver, name))}
    except WebserverError as error:
        return f"Dagster's webserver at {webserver} could not be asked to reload the definitions ({error}): {later}"
    if problems:
        return "; ".join(f"the code location {name} was not reloaded: {why}" for name, why in problems.items())
    if not names:
        return f"Dagster's webserver at {webserver} serves no code location with entities: nothing was reloaded"
    return f"Dagster has reloaded the code location {', '.join(names)}"


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError, SettingsError) as error:
        why = str(getattr(error, "reason", None) or error or type(error).__name__).strip()
        raise WebserverError(printable(why)) from error


def _locations(webserver: str, seconds: float = _CONNECT_SECONDS) -> list[dict[str, Any]]:
    workspace = _ask(webserver, _LOCATIONS, seconds)["workspaceOrError"]
    return [entry for entry in workspace.get("locationEntries", ()) if _is_ours(entry)]


def _is_ours(entry: dict[str, Any]) -> bool:
    location = entry["locationOrLoadError"] or {}
    repositories = location.get("repositories")
    if repositories is None:
        return location.get("__typename") == "PythonError"
    return any(
        resource["name"].startswith(_OURS) for one in repositories for resource in one["allTopLevelResourceDetails"]
    )


def _reload(webserver: str, name: str) -> str | None:
    answer = _ask(webserver, _RELOAD, _RELOAD_SECONDS, name=name)["reloadRepositoryLocation"]
    return _message(answer) or _message(answer.get("locationOrLoadError") or {})


def _message(answer: dict[str, Any]) -> str | None:
    message = answer.get("message")
    return message.strip().splitlines()[0] if message else None


def _ask(webserver: str, query: str, seconds: float, **variables: str) -> dict[str, Any]:
    body = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{webserver}/graphql", body, headers)  # noqa: S310 - settings allow http only
    if token := kept_token(webserver):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=seconds) as response:  # noqa: S310
        answer = json.load(response)
    if answer.get("errors"):
        raise ValueError(answer["errors"][0]["message"])
    data: dict[str, Any] = answer["data"]
    return data
