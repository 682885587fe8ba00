"""An entity as it is stored, in a tree that is perhaps not valid."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from falcon_assets.catalog.yaml_files.documents import Document
from falcon_assets.model.shared import Acl


@dataclass(frozen=True)
class StoredEntity:
    """Who owns an entity.

    Attributes:
        document: What declares it, with kind and name.
    """

    document: Document

    @property
    def kind(self) -> str:
        """Of what kind."""
        return str(self.document.data["kind"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.document.data["name"])

    @property
    def acl(self) -> Acl | None:
        """Its ``acl``; one that is not legal gives nothing to anybody but its owner and group."""
        said = self.document.data.get("acl")
        if said is None:
            return None
        fields = said if isinstance(said, dict) else {}
        try:
            return Acl(**fields)
        except (ValidationError, TypeError):  # TypeError: a key that is no text
            owner, group = (text if isinstance(text := fields.get(key), str) else "" for key in ("owner", "group"))
            return Acl.model_construct(owner=owner, group=group, permission="0700")
