"""An entity of a tree of definitions that may be invalid."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from falcon_assets.catalog.yaml_files.documents import Document
from falcon_assets.model.shared import Acl


@dataclass(frozen=True)
class StoredEntity:
    """Name and owner of an entity; its document must have kind and name."""

    document: Document

    @property
    def kind(self) -> str:
        return str(self.document.data["kind"])

    @property
    def name(self) -> str:
        return str(self.document.data["name"])

    @property
    def acl(self) -> Acl | None:
        """The entity's ``acl``; an illegal one grants nothing to anyone but its owner and group."""
        said = self.document.data.get("acl")
        if said is None:
            return None
        fields = said if isinstance(said, dict) else {}
        try:
            return Acl(**fields)
        except (ValidationError, TypeError):  # TypeError: a key that is no text
            owner, group = (text if isinstance(text := fields.get(key), str) else "" for key in ("owner", "group"))
            return Acl.model_construct(owner=owner, group=group, permission="0700")
