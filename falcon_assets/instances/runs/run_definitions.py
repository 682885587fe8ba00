"""Earlier definitions of a process, adapted to the present feeds and clusters."""

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
    process: str
    cluster: str
    store: EntityStore
    home: Path
    engine: Engine

    def of(self, number: int, *, with_feeds: bool = True) -> tuple[Process, Path]:
        """The process of a version, and the folder of its workflows; raises OldDefinitionError where it cannot run.

        ``with_feeds``: its feeds must exist now, and its outputs be its own.
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
            raise OldDefinitionError("; ".join(map(str, problems)) or "its text is not a definition of it")
        return definitions.processes[version.name].entity

    def _require_there(self, name: str) -> None:
        feed = self.store.feeds.get(name)
        if feed is None or self.cluster not in [one.name for one in feed.clusters]:
            where = "" if feed is None else f" on cluster {self.cluster!r}"
            raise OldDefinitionError(f"there is no feed {name!r}{where}")

    def require_outputs(self, process: Process) -> None:
        """Raises OldDefinitionError for an output that does not exist any more, or that another entity writes."""
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
    """The definitions of a process for the instances of a run; safe from several threads.

    ``loaded`` is the definition that the code location loaded; ``loaded_version`` None: not recorded, all instances run
    with it. ``old`` makes runners for other versions; ``say`` receives notes on instances that do not run with the
    latest.
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
        if self.loaded_version is None:
            return None
        number = self.versions.present if self.use_latest else self._own(nominal)
        # What came into being by another frequency or validity since then had no definition before.
        return number if number is None or self._has(number, nominal) else self.loaded_version

    def runner(self, nominal: datetime) -> InstanceRunner:
        """Raises OldDefinitionError, with advice, where the version cannot run any more."""
        number = self.version(nominal)
        runner = self._runner(number)
        if isinstance(runner, OldDefinitionError):
            raise OldDefinitionError(f"{runner}; {self._instead(nominal)}")
        if number != self.versions.present and number is not None:
            self.say(
                f"{self.loaded.process.name} {format_instant(nominal)} runs with version {number} of its definition, "
                f"the one that it has, not with the latest, {self.versions.present}; {self._instead(nominal)}"
            )
        return runner

    @contextmanager
    def hinting(self, nominal: datetime) -> Iterator[None]:
        """Adds a hint to errors of earlier versions: fixing the present one does not help. Raises WorkflowError."""
        try:
            yield
        except WorkflowError as error:
            number = self.version(nominal)
            if number is None or number == self.versions.present:
                raise
            said = f"this is version {number} of the definition, the latest is {self.versions.present}"
            raise WorkflowError(f"{error}\n{said}; {self._instead(nominal)}") from error

    def _own(self, nominal: datetime) -> int | None:
        """An entity that never was scheduled is still being written: the loaded version."""
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
    """Records definitions once per load, however often it is called; safe from several threads.

    ``done_at`` is on the falcon clock; None: not everything is recorded.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        self._root, self._settings = root, settings
        self.done_at: datetime | None = None

    def record(self, ledger: Ledger) -> None:
        """The next tick tries again where the tree has problems."""
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
    """The versions, and the loaded one; None: it is not recorded."""
    recording.record(ledger)
    with ledger.engine.connect() as connection:
        found = versions_of(connection, [(entity.kind, entity.name)]).get((entity.kind, entity.name), EntityVersions())
    return found, found.at(recording.done_at) if recording.done_at else None
