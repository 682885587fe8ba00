"""Starts provisioned executors of a cluster when work waits for them, and stops those that are idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.endpoints.reachable import silence_at
from falcon_assets.compute.spark.provisioned import ProvisionedSpark, stop_others
from falcon_assets.compute.spark.server_process import START_SECONDS
from falcon_assets.errors import SettingsError, WorkflowError
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.store.executors import known_executors, note
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import ClusterExecutor
from falcon_assets.planning.executor_health import ExecutorRecord
from falcon_assets.settings import Settings

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Provisioning:
    """The provisioned executors of a cluster, on this machine."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def step(self, ledger: Ledger) -> list[str]:
        """Starts and stops what is due; returns what it did, in words."""
        mine = {one.name: one for one in self.cluster.executors if one.provision}
        gone = stop_others(self.settings.home, self.cluster.name, mine)
        done = [f"executor {name} of {self.cluster.name} is stopped: it is not provisioned any more" for name in gone]
        return [*done, *(news for one in mine.values() for news in self._step(ledger, one))]

    def start_now(self, ledger: Ledger, executor: ClusterExecutor) -> None:
        """Starts it for a run that does not wait for a coordinator, and waits until it answers.

        Raises:
            WorkflowError: it does not answer in time.
        """
        self._launch(ledger, executor)
        deadline = time.monotonic() + START_SECONDS
        while (silence := silence_at(executor.endpoint)) and time.monotonic() < deadline:
            if not self._spark(executor).is_running:
                break
            time.sleep(_POLL_SECONDS)
        if silence:
            raise WorkflowError(f"executor {executor.name!r} of cluster {self.cluster.name!r}: {silence}")

    def _step(self, ledger: Ledger, executor: ClusterExecutor) -> Iterator[str]:
        with ledger.engine.connect() as connection:
            known = known_executors(connection, self.cluster)[executor.name]
        spark, subject = self._spark(executor), f"executor {executor.name} of {self.cluster.name}"
        if known.launched_at is not None and not spark.is_running:
            self._note(ledger, executor, lambda record: record.failed(f"it ended: see {spark.log}", self.now()))
            yield f"{subject} ended: see {spark.log}"
        elif known.launched_at is None and known.is_wanted(self.now()):
            problem = self._launch(ledger, executor)
            yield f"{subject} cannot be started: {problem}" if problem else f"{subject} is started: work waits for it"
        elif known.launched_at is not None and self._is_idle(ledger, executor):
            spark.stop()
            yield f"{subject} is stopped: nothing has run on it for {executor.provision and executor.provision.idle}"

    def _launch(self, ledger: Ledger, executor: ClusterExecutor) -> str:
        """Returns why it cannot be started; "": it can."""
        try:
            self._spark(executor).launch(self.settings.environ)
        except (SettingsError, OSError) as error:
            problem = f"it cannot be started: {error}"
            self._note(ledger, executor, lambda record: record.failed(problem, self.now()))
            return str(error)
        self._note(ledger, executor, lambda record: record.launched(self.now()))
        return ""

    def _is_idle(self, ledger: Ledger, executor: ClusterExecutor) -> bool:
        """Whether it is to be stopped; nobody chooses it from then on."""
        assert executor.provision is not None
        with ledger.engine.begin() as connection:
            used = Executors.alone(connection, self.store, self.cluster.name, self.now())
            known = known_executors(connection, self.cluster)[executor.name]
            since = None if used.jobs(executor.name) else known.idle_since or self.now()
            is_over = since is not None and self.now() - since >= executor.provision.idle.length
            change = ExecutorRecord.stopped if is_over else lambda record: replace(record, idle_since=since)
            if is_over or since != known.idle_since:
                note(connection, self.cluster, executor.name, change)
        return is_over

    def _note(
        self, ledger: Ledger, executor: ClusterExecutor, change: Callable[[ExecutorRecord], ExecutorRecord]
    ) -> None:
        with ledger.engine.begin() as connection:
            note(connection, self.cluster, executor.name, change)

    def _spark(self, executor: ClusterExecutor) -> ProvisionedSpark:
        return ProvisionedSpark(self.settings.home, self.cluster.name, executor)
