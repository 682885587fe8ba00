"""Checks of Dagster's webserver: whether it can reload definitions, and the powers of its jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.operations.job_powers import other_users
from falcon_assets.operations.reload import WebserverError, loaded_code_locations

ANSWER_SECONDS = 8.0


def check_webserver(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether it answers, and has loaded the code locations with entities."""
    url = context.settings.webserver
    if url is None:
        yield ok("not checked: FALCON_WEBSERVER_URL is empty")
        return
    try:
        found = loaded_code_locations(url, ANSWER_SECONDS)
    except WebserverError as error:
        yield warning(
            f"{url} does not answer ({error}): changed definitions are not reloaded automatically",
            "start dagster dev or dagster-webserver, or set FALCON_WEBSERVER_URL",
        )
        return
    if not found:
        yield problem(f"{url} serves no code location with entities", "add one to workspace.yaml")
    for name, why in found.items():
        if why:
            yield problem(f"the code location {name} is not loaded: {why}", "fix that, then reload it in Dagster's UI")
        else:
            yield ok(f"{url} serves the code location {name}")


def check_jobs(context: CheckContext) -> Iterator[Diagnosis]:
    """Shows what jobs launched in Dagster may do, and who can launch them."""
    yield judge_jobs(context.settings.jobs, other_users())


def judge_jobs(allowed: Collection[str] | None, others: Collection[str]) -> Diagnosis:
    """Judges the powers of jobs; ``allowed`` None: FALCON_JOBS is not set; ``others`` can reach the webserver."""
    what = "nothing" if allowed is not None and not allowed else ", ".join(sorted(allowed or ("entities", "instances")))
    if not others or what == "nothing":
        return ok(f"what jobs of the webserver may change: {what}")
    who = f"{next(iter(others))!r}" + (f" and {len(others) - 1} more" if len(others) > 1 else "")
    if allowed is None:
        return warning(
            f"{who} can log in here and reach Dagster's webserver, which does not authenticate its users: its jobs "
            "may change nothing, but whoever reaches it can launch runs",
            "put it behind a proxy that authenticates its users, then set in FALCON_JOBS what jobs may change",
        )
    return warning(
        f"{who} can log in here and reach Dagster's webserver, and its jobs may change: {what}",
        "FALCON_JOBS=nothing, unless the webserver listens behind a proxy that authenticates its users",
    )
