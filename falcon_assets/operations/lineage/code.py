"""The code that versions were made with."""

from __future__ import annotations

from sqlalchemy import Connection

from falcon_assets.ledger.entities.definition_versions import definition_history
from falcon_assets.planning.lineage.difference import CodeVersion
from falcon_assets.planning.lineage.graph import Version


def code_version(connection: Connection, version: Version) -> CodeVersion | None:
    """The definition, with the files of its workflows, that a version was made with; None: it is not recorded.

    Of a copy that is the definition of its feed.
    """
    if version.process is None or version.definition is None:
        return None
    for kind, name in (("process", version.process), ("feed", version.feed)):
        for one in definition_history(connection, kind, name):
            if one.version == version.definition:
                return CodeVersion(one.version, one.text_hash, one.workflow_hash)
    return None
