"""``falcon entity touch``: the present definition is a new version, although nothing has changed."""

from __future__ import annotations

from falcon_assets.catalog.stored_entity import StoredEntity
from falcon_assets.catalog.stored_tree import read_tree
from falcon_assets.ledger.entities.definition_versions import Recorder, record_definitions
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.auditing import audited
from falcon_assets.operations.entities.named import stored_keys
from falcon_assets.operations.entities.results import ANY_KIND, EntityChange, OperationResult, Request
from falcon_assets.operations.installation import Installation


def touch(installation: Installation, request: Request) -> OperationResult:
    """Records the definitions of entities as new versions; they hold from now on (source: Apache Falcon).

    Each time it does so again: that is what it is for.

    Raises:
        UnknownEntityError: an entity is not there, or there are several of a name, and no kind is given.
        InvalidDefinitionsError: the tree has problems.
        SettingsError: the database cannot be reached.
        DeniedError: who asks may not change one of the entities.
    """
    settings = installation.settings
    root, now = settings.entity_defs, settings.now()
    with audited(installation, "touch", request) as audit:
        audit.about((request.kind or ANY_KIND, name) for name in request.given)
        stored, actor = read_tree(root), audit.principal.name
        keys = list(dict.fromkeys(stored_keys(stored, request.given, request.kind)))
        audit.about(keys)
        require_change(audit.principal, "touch", [StoredEntity(stored.by_key[key]) for key in keys])
        if not request.dry_run:
            recorder = Recorder(actor, "touch", request.reason, frozenset(keys), anew=True)
            record_definitions(
                installation.database, root, now, Recorder(actor)
            )  # what came by other ways is not touched
            record_definitions(installation.database, root, now, recorder)
        changes = tuple(EntityChange(*key, "touched", stored.by_key[key].file) for key in keys)
        result = OperationResult("touch", actor, request.reason, now, request.dry_run, changes)
        audit.result(result.changed)
    return result
