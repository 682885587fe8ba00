"""Which definition each instance of a run is computed with: the one that it has, or the present one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from falcon_assets.errors import OldDefinitionError, UnknownEntityError, WorkflowError
from falcon_assets.ledger.entities.versions_of_instances import EntityVersions
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.runs.instance_run import InstanceRunner
from falcon_assets.planning.time.timeline import process_timeline


@dataclass
class RunDefinitions:
    """The definitions of a process for the instances of a run; safe to use from several threads.

    Attributes:
        loaded: Runs instances with the definition that was loaded with the code location.
        loaded_version: Its number; None: it is not recorded, and all instances run with it.
        versions: Those that are recorded.
        use_latest: Whether all instances run with the latest one.
        old: Makes what runs another version.
        say: Told about instances that do not run with the latest one.
    """

    loaded: InstanceRunner
    loaded_version: int | None
    versions: EntityVersions
    use_latest: bool
    old: Callable[[int], InstanceRunner]
    say: Callable[[str], None]
    _made: dict[int, InstanceRunner | OldDefinitionError] = field(default_factory=dict, init=False)
    _making: Lock = field(default_factory=Lock, init=False)

    def version(self, nominal: datetime) -> int | None:
        """The version that the instance runs with; None: none is recorded."""
        if self.loaded_version is None:
            return None
        number = self.versions.present if self.use_latest else self._own(nominal)
        # What came into being by another frequency or validity since then had no definition before.
        return number if number is None or self._has(number, nominal) else self.loaded_version

    def runner(self, nominal: datetime) -> InstanceRunner:
        """What runs the instance.

        Raises:
            OldDefinitionError: the version that it has cannot run any more; says what to do.
        """
        number = self.version(nominal)
        runner = self._runner(number)
        if isinstance(runner, OldDefinitionError):
            raise OldDefinitionError(f"{runner}; {self._instead(nominal)}")
        if number != self.versions.present and number is not None:
            self.say(
                f"{self.loaded.process.name} {format_instant(nominal)} runs with version {number} of its definition, "
                f"which it has, not with the latest, {self.versions.present}; {self._instead(nominal)}"
            )
        return runner

    @contextmanager
    def hinting(self, nominal: datetime) -> Iterator[None]:
        """Where the workflow of an earlier version fails in it, the error says so: mending the present one is no help.

        Raises:
            WorkflowError: the workflow failed.
        """
        try:
            yield
        except WorkflowError as error:
            number = self.version(nominal)
            if number is None or number == self.versions.present:
                raise
            said = f"this is version {number} of the definition, the latest is {self.versions.present}"
            raise WorkflowError(f"{error}\n{said}; {self._instead(nominal)}") from error

    def _own(self, nominal: datetime) -> int | None:
        """That of what never was scheduled is the one that somebody works on: what was loaded."""
        return self.loaded_version if self.versions.scheduled_since is None else self.versions.of(nominal)

    def _has(self, number: int, nominal: datetime) -> bool:
        runner = self._runner(number)
        if isinstance(runner, OldDefinitionError):
            return True
        try:
            return process_timeline(runner.process, runner.cluster.name).contains(nominal)
        except UnknownEntityError:
            return False

    def _runner(self, number: int | None) -> InstanceRunner | OldDefinitionError:
        if number in (None, self.loaded_version):
            return self.loaded
        with self._making:
            if number not in self._made:
                try:
                    self._made[number] = self.old(number)
                except OldDefinitionError as error:
                    self._made[number] = error
            return self._made[number]

    def _instead(self, nominal: datetime) -> str:
        process, cluster = self.loaded.process.name, self.loaded.cluster.name
        command = f"falcon instance rerun {process} --start {format_instant(nominal)} --cluster {cluster} --use-latest"
        return f"to run it with the latest: {command}"
