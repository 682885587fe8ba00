"""The pydantic configuration that all declarations share."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

LONGEST_NAME = 39
_NAME = rf"[A-Za-z][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}"
EntityName = Annotated[str, StringConstraints(pattern=rf"^{_NAME}$")]
"""The name of an entity, input or output: a letter, then letters, digits, ``-`` or ``_``, 39 characters at most.

Source: Falcon's IDENTIFIER pattern.
"""


def is_entity_name(text: str) -> bool:
    """Whether an entity can have it for a name."""
    return re.fullmatch(_NAME, text) is not None


NonEmpty = Annotated[str, StringConstraints(min_length=1)]


class Declaration(BaseModel):
    """Strict and immutable: an unknown key is an error, and nothing changes after it was read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True, protected_namespaces=()
    )
