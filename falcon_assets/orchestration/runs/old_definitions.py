"""Definitions that a process had before: made fit to run again with the feeds and clusters of now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from falcon_assets.catalog.checks.processes.workflows import LIB_SUFFIXES
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.hidden_values import WITHOUT, with_present_values
from falcon_assets.catalog.recorded_entities import plain_values
from falcon_assets.catalog.store import EntityStore
from falcon_assets.catalog.workflow_files import WorkflowFile, declared_paths
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.errors import FalconError, OldDefinitionError
from falcon_assets.ledger.entities.definition_versions import DefinitionVersion, definition_version
from falcon_assets.ledger.entities.workflow_contents import kept_files
from falcon_assets.ledger.entities.workflow_folders import workflow_folder
from falcon_assets.model.process import Process


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
