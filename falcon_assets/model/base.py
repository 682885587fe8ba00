"""The pydantic configuration that all declarations share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

EntityName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,38}$")]
"""The name of an entity, input or output: a letter, then letters, digits, ``-`` or ``_``, 39 characters at most.

Source: Falcon's IDENTIFIER pattern.
"""

NonEmpty = Annotated[str, StringConstraints(min_length=1)]


class Declaration(BaseModel):
    """Strict and immutable: an unknown key is an error, and nothing changes after it was read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True, protected_namespaces=()
    )
