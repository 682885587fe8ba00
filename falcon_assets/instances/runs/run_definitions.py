"""Definitions that a process had before: made fit to run again with the feeds and clusters of now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

from sqlalchemy import Engine

from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.hidden_values import WITHOUT, with_present_values
from falcon_assets.catalog.recorded_entities import plain_values
from falcon_assets.catalog.store import EntityStore
from falcon_assets.catalog.workflow_files import LIB_SUFFIXES, WorkflowFile, declared_paths
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.entities.definition_versions import (
    DefinitionVersion,
    EntityVersions,
    Recorder,
    definition_version,
    record_definitions,
    versions_of,
)
from falcon_assets.entities.workflow_contents import kept_files, workflow_folder
from falcon_assets.errors import (
    DefinitionStoreError,
    FalconError,
    InvalidDefinitionsError,
    OldDefinitionError,
    UnknownEntityError,
    WorkflowError,
)
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.timeline import process_timeline
from falcon_assets.settings import Settings


@dataclass(frozen=True)
class OldDefinitions:
    """The definitions that a process had.

    Attributes:
        process: Its name.
        cluster: Where it runs.
        store: The entities as they are now.
        home: FALCON_HOME, where workflows are laid out.
        engine: The database with the versions.
    """

    process: str
    cluster: str
    store: EntityStore
    home: Path
    engine: Engine

    def of(self, number: int, *, with_feeds: bool = True) -> tuple[Process, Path]:
        """The process of that version, and the folder that its workflows are relative to.

        Args:
            number: The version.
            with_feeds: Whether its feeds have to be there as they are declared now, and its outputs to be its own.

        Raises:
            OldDefinitionError: it cannot run any more; says why.
        """
        name = self.process
        try:
            with self.engine.connect() as connection:
                version = definition_version(connection, "process", name, number)
                process = self._parsed(version)
                if with_feeds:
                    for one in process.inputs:
                        self._require_there(one.feed)
                    self.require_outputs(process)
                files = kept_files(connection, name, number)
                wanted = declared_paths(process)
                _require_kept(wanted, files)
                kept = [one for one in files if one.hash]
                folder = workflow_folder(connection, self.home, str(version.workflow_hash), kept) if wanted else None
        except FalconError as error:
            raise OldDefinitionError(f"version {number} of process {name!r} cannot run any more: {error}") from error
        return process, folder or self.store.root

    def _parsed(self, version: DefinitionVersion) -> Process:
        now = plain_values(self.store.processes.get(version.name))
        text = with_present_values(version.text or "", now, "process", WITHOUT)
        files = Files()
        read_file(Path(f"{version.name} version {version.version}"), text.encode(), files)
        definitions, problems = parse_documents(self.store.root, files)
        if problems or version.name not in definitions.processes:
            raise OldDefinitionError("; ".join(map(str, problems)) or "its text is no definition of it")
        return definitions.processes[version.name].entity

    def _require_there(self, name: str) -> None:
        feed = self.store.feeds.get(name)
        if feed is None or self.cluster not in [one.name for one in feed.clusters]:
            where = "" if feed is None else f" on cluster {self.cluster!r}"
            raise OldDefinitionError(f"there is no feed {name!r}{where}")

    def require_outputs(self, process: Process) -> None:
        """Its outputs are there, and nobody else writes them.

        Raises:
            OldDefinitionError: names the output that is not.
        """
        for output in process.outputs:
            self._require_there(output.feed)
            others = [one.name for one in self.store.producers(output.feed, self.cluster) if one.name != process.name]
            others += [one.name for one in self.store.replications_to(output.feed, self.cluster)]
            if others:
                raise OldDefinitionError(f"feed {output.feed!r} is written by {', '.join(others)} now")


def _require_kept(wanted: tuple[str, ...], files: list[WorkflowFile]) -> None:
    for path in wanted:
        own = [one for one in files if one.path == path or one.path.startswith(f"{path.rstrip('/')}/")]
        if not own:
            raise OldDefinitionError(f"its workflow {path} was not kept: the version is older than that")
        for one in own:
            if one.hash is None and (one.path == path or one.path.endswith(LIB_SUFFIXES)):
                raise OldDefinitionError(f"its workflow {one.path} was not kept: {one.problem}")


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


class DefinitionRecording:
    """Asked by every tick and run; only the first ones of a load do anything. Safe to use from several threads.

    Attributes:
        done_at: When everything was written down, on the falcon clock; None: it is not.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        """For definitions below ``root`` that have just been loaded."""
        self._root, self._settings = root, settings
        self.done_at: datetime | None = None

    def record(self, ledger: Ledger) -> None:
        """Writes down what is new; the next tick tries again where the tree has problems by now."""
        if self.done_at is not None:
            return
        settings = self._settings
        now = settings.now()
        with suppress(InvalidDefinitionsError, DefinitionStoreError):
            record_definitions(ledger.engine, self._root, now, Recorder(settings.user))
            self.done_at = now


def recorded_versions(
    ledger: Ledger, recording: DefinitionRecording, entity: Feed | Process
) -> tuple[EntityVersions, int | None]:
    """The versions of an entity, and which of them was loaded; None: what was loaded is not recorded."""
    recording.record(ledger)
    with ledger.engine.connect() as connection:
        found = versions_of(connection, [(entity.kind, entity.name)]).get((entity.kind, entity.name), EntityVersions())
    return found, found.at(recording.done_at) if recording.done_at else None
