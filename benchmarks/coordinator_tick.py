"""Both sides' decisions about the same backlog: ``python -m benchmarks.coordinator_tick`` prints what it measured.

Each landing feed has 24 hours that nobody has processed yet. Ours is told by the ledger, Dagster's declarative
automation by the event log; both are in the same PostgreSQL, through the same Dagster instance.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import dagster as dg

from benchmarks.hourly_graph import CLUSTER, FIRST, hours, land
from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.settings import Settings, load_settings

ROUNDS = 2
HOURS = 24
LATEST = dg.AutomationCondition.in_latest_time_window()


def main() -> None:
    """One tick of Dagster's before anything lands, as its conditions ask what is new since; then the measured ones."""
    warnings.simplefilter("ignore", dg.BetaWarning)
    settings = load_settings()
    store = load_entities(settings.entity_defs)
    eager = dg.AutomationCondition.eager()
    stock = {"eager": _stock(store, eager), "eager, every hour": _stock(store, eager.without(LATEST))}
    with open_instance(settings) as instance:
        ledger = open_ledger(settings, instance)
        before = {name: _evaluate(defs, instance, settings, None) for name, defs in stock.items()}
        land(instance, [f"landed-{number}" for number in range(len(store.processes))], hours(HOURS))
        measured = {"fold": [_timed(lambda: (ledger.catch_up(), 0))]}
        coordinator = Coordinator(store, settings, store.workloads)
        _ours(coordinator, ledger, 1)  # writes the statuses of new entities down
        rounds = [("ours", "eager")] * ROUNDS + [("ours, no budget", "eager, every hour")]
        for ours, theirs in rounds:
            budget = 1000 if ours == "ours" else HOURS * len(store.processes)
            measured.setdefault(ours, []).append(_timed(partial(_ours, coordinator, ledger, budget)))
            evaluate = partial(_theirs, stock[theirs], instance, settings, before[theirs].cursor)
            measured.setdefault(theirs, []).append(_timed(evaluate))
    print(json.dumps(measured))


def _stock(store: EntityStore, condition: dg.AutomationCondition) -> dg.Definitions:
    """The same graph as an engineer writes it with Dagster alone."""
    partitions = dg.HourlyPartitionsDefinition(
        start_date=FIRST, end_date=FIRST + timedelta(days=365), fmt="%Y-%m-%dT%H:%MZ", end_offset=1
    )

    def made(number: int) -> dg.AssetsDefinition:
        @dg.asset(
            key=[CLUSTER, f"made-{number}"],
            deps=[[CLUSTER, f"landed-{number}"]],
            partitions_def=partitions,
            automation_condition=condition,
        )
        def compute() -> None: ...

        return compute

    numbers = range(len(store.processes))
    landed = [dg.AssetSpec([CLUSTER, f"landed-{number}"], partitions_def=partitions) for number in numbers]
    return dg.Definitions([*landed, *map(made, numbers)])


def _evaluate(defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, cursor: Any) -> Any:
    return dg.evaluate_automation_conditions(defs, instance, evaluation_time=settings.now(), cursor=cursor)


def _theirs(defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, cursor: Any) -> tuple[int, int]:
    requested = _evaluate(defs, instance, settings, cursor).total_requested
    return requested, requested


def _ours(coordinator: Coordinator, ledger: Ledger, budget: int) -> tuple[int, int]:
    """Instances and runs requested, as the sensor requests them."""
    outlook = coordinator.decide(ledger, budget=budget)
    assert not outlook.problems
    requests = [dg.RunRequest(run_key=run.run_key, job_name=run.job_name, tags=dict(run.tags)) for run in outlook.runs]
    return sum(len(run.launch.nominals) for run in outlook.runs), len(requests)


def _timed(work: Callable[[], tuple[int, int]]) -> tuple[float, int, int]:
    started = time.perf_counter()
    requested = work()
    return (time.perf_counter() - started, *requested)


if __name__ == "__main__":
    main()
