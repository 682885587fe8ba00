"""Runs that end because what they run in ends, in order or not: that counts as no failure of their instances."""

from __future__ import annotations

import dagster as dg

from falcon_assets.history.dagster_internals import runs
from falcon_assets.history.mapping import run_tags


def interrupt(instance: dg.DagsterInstance, run_id: str, why: str) -> None:
    """Says that the run is being interrupted, and why; nothing where somebody stops it already, or it is over.

    Dagster then takes its end for a cancellation, not for a failure.
    """
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished or run.status is dg.DagsterRunStatus.CANCELING:
        return
    # The tag first: whoever folds the end of the run must find it.
    runs.add_tag(instance, run_id, run_tags.INTERRUPTED, why)
    runs.ask_to_stop(instance, run, f"{why}: the run is interrupted, and its instances go on in the next run")


def cut_off(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    """Ends a run whose process is gone: it has failed, and its instances have not."""
    runs.add_tag(instance, run.run_id, run_tags.INTERRUPTED, why)  # first, as above
    runs.end_as_failed(instance, run, why)


def is_stopped(run: dg.DagsterRun | None) -> bool:
    """Whether a person stops the run, which is more than an interruption."""
    return run is not None and run.status is dg.DagsterRunStatus.CANCELING and run_tags.INTERRUPTED not in run.tags
