"""The pydantic configuration that all declarations share."""

from __future__ import annotations

import ast
import inspect
import re
from functools import lru_cache
from textwrap import dedent
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, StringConstraints
from pydantic_core import CoreSchema

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

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, protected_namespaces=())

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(core_schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, said in key_meanings(cls).items():
            properties[cls.model_fields[name].alias or name]["description"] = said
        return found


@lru_cache(maxsize=128)
def key_meanings(model: type[BaseModel]) -> dict[str, str]:
    """Returns the text below each key of a model.

    Pydantic could look for them itself, but would do it in every process that loads the models: it parses their source.
    """
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            (body,) = ast.parse(dedent(inspect.getsource(one))).body
            assert isinstance(body, ast.ClassDef)
            for key, below in zip(body.body, body.body[1:], strict=False):
                if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and isinstance(below, ast.Expr):
                    said = ast.literal_eval(below.value) if isinstance(below.value, ast.Constant) else None
                    if isinstance(said, str):
                        found[key.target.id] = inspect.cleandoc(said)
    return {name: said for name, said in found.items() if name in model.model_fields}
