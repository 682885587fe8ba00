"""Whether the executor of a run answers when the run begins: its coordinator chose it some time ago."""

from __future__ import annotations

from datetime import UTC, datetime

from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.endpoints.reachable import silence_at
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.store.executors import note_answer
from falcon_assets.planning.executor_health import Answer


def why_away(ledger: Ledger, executor: Executor) -> str | None:
    """Returns why it does not answer, and records that, so that the next run is given another one; None: it does."""
    why = silence_at(executor.endpoint)
    if why:
        with ledger.engine.begin() as connection:
            note_answer(connection, executor.cluster, executor.name, Answer(why), datetime.now(UTC))
    return why or None
