"""Hooks of secrets: encrypted values that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl
from falcon_assets.model.reference import encrypted_in

if TYPE_CHECKING:
    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.errors import Problem


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if programs:
        return []
    from falcon_assets.catalog.encryption import Sealed

    documents = [declared.document for declared in definitions.all()]
    return [
        document.problem(path, "is not what falcon secrets encrypt prints")
        for document in documents
        for path, _, text in encrypted_in(document.data)
        if Sealed.parse(text) is None
    ]
