"""Interrupted runs, whose process or host ends: this is no failure of their instances."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from falcon_assets.history.dagster_internals import runs
from falcon_assets.history.mapping import run_tags


def interrupt(instance: dg.DagsterInstance, run_id: str, why: str) -> None:
    """Marks the run as interrupted, with the reason; does nothing if it is over or already being stopped.

    Dagster then takes its end for a cancellation, not for a failure.
    """
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished or run.status is dg.DagsterRunStatus.CANCELING:
        return
    # The tag first: whoever folds the end of the run must find it.
    runs.add_tag(instance, run_id, run_tags.INTERRUPTED, why)
    runs.ask_to_stop(instance, run, f"{why}: the run is interrupted, and its instances go on in the next run")


def cut_off(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    """Ends a run whose process is gone: the run is failed, its instances are not."""
    runs.add_tag(instance, run.run_id, run_tags.INTERRUPTED, why)  # first, as above
    runs.end_as_failed(instance, run, why)


def cut_off_if_unstarted(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> None:
    """Cuts off those of the runs that have still not begun: the daemon that was to start them is gone."""
    for run_id in run_ids:
        run = instance.get_run_by_id(run_id)
        if run is not None and run.status is dg.DagsterRunStatus.STARTING:
            cut_off(instance, run, "the daemon that was to start it was replaced by another one before")


def is_stopped(run: dg.DagsterRun | None) -> bool:
    """Whether a user stops the run, as opposed to an interruption."""
    return run is not None and run.status is dg.DagsterRunStatus.CANCELING and run_tags.INTERRUPTED not in run.tags
