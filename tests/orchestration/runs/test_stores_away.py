"""What is said of an instance whose store was away, or taken: it waits, unless what it computes can be the reason."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from falcon_assets.errors import BeingWrittenError, FalconError, RootAwayError, StorageError, UnreachableError
from falcon_assets.history.dagster_internals.events import Batches
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.events.record import said_by
from falcon_assets.instances.runs.workload_execution import WorkloadRun
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.workloads import ProcessWorkload
from tests.builders import make_process

T = parse_instant("2013-01-01T00:00Z")


@pytest.mark.parametrize(
    ("error", "began", "launched", "state"),
    [
        (RootAwayError("its root is away"), False, True, "WAITING"),
        (RootAwayError("its root is away"), True, True, "WAITING"),
        (UnreachableError("it does not answer"), False, True, "WAITING"),
        (UnreachableError("it does not answer"), True, True, "FAILED"),
        (StorageError("it refuses"), False, True, "FAILED"),
        (RootAwayError("its root is away"), False, False, "FAILED"),
        (BeingWrittenError("another run writes it"), True, True, "WAITING"),
        (BeingWrittenError("another run writes it"), True, False, "FAILED"),
    ],
    ids=["away", "away meanwhile", "silent", "silent meanwhile", "refused", "by hand", "taken", "taken, by hand"],
)
def test_what_is_said(error: FalconError, began: bool, launched: bool, state: str) -> None:
    workload = ProcessWorkload(make_process(inputs=[], outputs=[]), "primary", {})
    events: list[Any] = []
    context: Any = SimpleNamespace(log=logging.getLogger())
    work: Any = SimpleNamespace(definition=lambda _: 1)
    claims: Any = SimpleNamespace(attempts={T: 2} if launched else {})
    run = WorkloadRun(workload, lambda: T, context, claims, work, Batches(events.extend))
    run._record_error(T, error, began=began)
    run.events.write()
    (changed,) = [InstanceChanged.read(said_by(event)) for event in events]
    waits = state == "WAITING"
    kind = "being_written" if isinstance(error, BeingWrittenError) else "store_away"
    data = {"kind": kind, "text": str(error)} if waits else None
    assert (changed.state.value, changed.reason, changed.reason_data) == (state, str(error), data)
    assert (run.failures, run.stopped) == (({}, {T: str(error)}) if waits else ({T: str(error)}, {}))
