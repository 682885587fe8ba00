"""The SQL that a run ran, as its workflow was kept."""

from __future__ import annotations

import posixpath

from sqlalchemy import Connection

from falcon_assets.catalog.recorded_entities import recorded_data
from falcon_assets.errors import OldDefinitionError
from falcon_assets.ledger.entities.definition_versions import DefinitionVersion
from falcon_assets.ledger.entities.workflow_contents import content_parts, kept_files

_ENGINE = "spark-sql"
_LARGEST = 1 << 18
"""Of larger ones, in bytes, nobody is told: they would be sent with each run."""


def recorded_sql(connection: Connection, definition: DefinitionVersion, *, is_late: bool = False) -> str | None:
    """The text of the workflow of a process; None: it is of another engine, was not kept, or is too large.

    Args:
        connection: The database with the versions.
        definition: Of the process.
        is_late: Whether it ran for late data, for which a process may have other workflows: None then.
    """
    try:
        said = recorded_data(definition.name, definition.text or "")
    except OldDefinitionError:
        return None
    workflow = said.get("workflow") if isinstance(said, dict) else None
    if definition.kind != "process" or not isinstance(workflow, dict) or workflow.get("engine") != _ENGINE:
        return None
    if is_late and "late_process" in said:
        return None
    path = posixpath.normpath(str(workflow.get("path")))
    kept = kept_files(connection, definition.name, definition.version)
    found = next((one for one in kept if one.hash and posixpath.normpath(one.path) == path), None)
    if found is None:
        return None
    text = b"".join(content_parts(connection, found.hash or ""))
    return text.decode("utf-8", "replace") if len(text) <= _LARGEST else None
