"""Recorded code of versions: definitions and workflows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from falcon_assets.catalog.recorded_entities import recorded_data
from falcon_assets.entities.definition_versions import DefinitionVersion, definition_history
from falcon_assets.errors import OldDefinitionError
from falcon_assets.features.lineage.difference import ChangedDefinition, CodeVersion, changed_keys
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.access import may_read
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation


def code_version(connection: Connection, version: Version) -> CodeVersion | None:
    """Returns the recorded code of a version, for a copy that of its feed; None: not recorded."""
    if version.process is None or version.definition is None:
        return None
    for kind, name in (("process", version.process), ("feed", version.feed)):
        for one in definition_history(connection, kind, name):
            if one.version == version.definition:
                return CodeVersion(one.version, one.text_hash, one.workflow_hash)
    return None


@dataclass(frozen=True)
class Compared:
    version: Version
    inputs: Sequence[Version]


def changed_definitions(
    installation: Installation, connection: Connection, before: Compared, after: Compared
) -> list[ChangedDefinition]:
    """Compares readable definitions of process, output, inputs and clusters, as of the making of two versions."""
    found = []
    for kind, name in _entities(installation, (before, after)):
        history = definition_history(connection, kind, name)
        then, now = (_of_version(history, kind, name, one.version) for one in (before, after))
        if then is None or now is None or then.text_hash == now.text_hash:
            continue
        try:
            keys = changed_keys(recorded_data(name, then.text or ""), recorded_data(name, now.text or ""))
        except OldDefinitionError:
            keys = ("its text",)
        if keys:
            found.append(ChangedDefinition(kind, name, then.version, now.version, keys))
    return found


def _entities(installation: Installation, both: Sequence[Compared]) -> Iterator[tuple[str, str]]:
    who, store = acting(installation.settings), installation.all_entities
    versions = [one for side in both for one in (side.version, *side.inputs)]
    named = {
        "process": {one.version.process for one in both if one.version.process},
        "feed": {one.feed for one in versions},
        "cluster": {one.cluster for one in versions},
    }
    declared: dict[str, Mapping[str, Process | Feed | Cluster]] = {
        "process": store.processes,
        "feed": store.feeds,
        "cluster": store.everywhere,
    }
    for kind, names in named.items():
        for name in sorted(names):
            known = declared[kind].get(name)
            if known is None or may_read(known.acl, who):
                yield kind, name


def _of_version(
    history: Sequence[DefinitionVersion], kind: str, name: str, version: Version
) -> DefinitionVersion | None:
    texts = [one for one in history if one.text is not None]
    if (kind, name) == ("process", version.process):
        return next((one for one in texts if one.version == version.definition), None)
    at = version.made_at or version.seen_at
    return next((one for one in reversed(texts) if at is not None and one.since <= at), None)
