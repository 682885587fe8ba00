"""The definition of an entity as it is stored."""

from __future__ import annotations

from falcon_assets.catalog.stored_tree import masked, read_tree
from falcon_assets.operations.auditing import require_readable
from falcon_assets.operations.entities.listing import any_named
from falcon_assets.operations.installation import Installation
from falcon_assets.texts import hidden


def stored_definition(installation: Installation, name: str, kind: str | None = None) -> str:
    """The text of an entity's definition; values of storage options are stars.

    Raises:
        UnknownEntityError: there is none of that name, or there are several and ``kind`` is not given.
        DeniedError: who asks may not read it.
    """
    entity = any_named(installation.all_entities, name, kind)
    require_readable(installation, "show", [entity])
    stored = read_tree(installation.all_entities.root)
    return hidden(masked(stored.text(stored.by_key[entity.kind, entity.name]).strip("\n") + "\n"))
