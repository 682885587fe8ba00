"""Check of Dagster's webserver, which commands ask to load changed definitions."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.operations.doctor.context import CheckContext
from falcon_assets.operations.doctor.judgement import Judgement, ok, problem, warning
from falcon_assets.operations.reload import WebserverError, loaded_code_locations

ANSWER_SECONDS = 8.0


def check_webserver(context: CheckContext) -> Iterator[Judgement]:
    """Whether it answers, and has loaded the code locations with entities."""
    url = context.settings.webserver
    if url is None:
        yield ok("not asked: FALCON_WEBSERVER_URL is empty")
        return
    try:
        found = loaded_code_locations(url, ANSWER_SECONDS)
    except WebserverError as error:
        yield warning(
            f"{url} does not answer ({error}): changed definitions are not taken up by themselves",
            "start dagster dev or dagster-webserver, or set FALCON_WEBSERVER_URL",
        )
        return
    if not found:
        yield problem(f"{url} serves no code location with entities", "add one to workspace.yaml")
    for name, why in found.items():
        if why:
            yield problem(f"the code location {name} is not loaded: {why}", "mend that, then reload it in Dagster's UI")
        else:
            yield ok(f"{url} serves the code location {name}")
