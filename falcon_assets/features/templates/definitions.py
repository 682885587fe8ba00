"""Templates and packs, as they are written; parameters are checked by a model that is made of their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.frequency import Frequency, Step
from falcon_assets.model.instant import Instant
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.model.reference import Reference
from falcon_assets.model.shared import Acl, TimeZoneName

ParameterType: TypeAlias = Literal[
    "text", "integer", "number", "boolean", "name", "names", "texts", "path", "frequency", "duration", "instant", "zone"
]
TYPES: Mapping[str, Any] = {
    "text": NonEmpty,
    "integer": StrictInt,
    "number": StrictInt | StrictFloat,
    "boolean": StrictBool,
    "name": EntityName,
    "names": Annotated[tuple[EntityName, ...], Field(min_length=1)],
    "texts": Annotated[tuple[NonEmpty, ...], Field(min_length=1)],
    "path": PathTemplate,
    "frequency": Step,
    "duration": Frequency,
    "instant": Instant,
    "zone": TimeZoneName,
}
"""The types of parameters are those of keys of entities."""
TEXTS = frozenset({"text", "name", "path", "frequency", "duration", "instant", "zone"})
"""Types whose values are texts as they are written."""
LISTS = frozenset({"names", "texts"})


class Parameter(Declaration):
    """A value that whoever uses a template gives."""

    description: str = ""
    """Shown by ``falcon template show``."""
    type: ParameterType = "text"
    """``text``, ``integer``, ``number``, ``boolean``; ``name`` (of an entity), ``path`` (with ``${YEAR}`` and so on),
    ``frequency``, ``duration``, ``instant``, ``zone``; ``names`` and ``texts`` are lists."""
    default: Any = None
    """Used if no value is given; without a default, a parameter is required unless it is optional."""
    optional: StrictBool = False
    """true: it may be omitted; values that consist of it are then omitted, too."""
    pattern: NonEmpty | None = None
    """A regular expression that the whole text matches."""
    enum: Annotated[tuple[str | StrictInt | StrictFloat, ...], Field(min_length=1)] | None = None
    """The legal values."""
    secret: StrictBool = False
    """true: it is given as ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``, and is not recorded with the
    entities."""

    @model_validator(mode="after")
    def _fits(self) -> Parameter:
        if self.pattern is not None and self.type != "text":
            raise ValueError("only a parameter of type text has a pattern")
        if self.enum is not None and self.type in LISTS:
            raise ValueError("a list has no enum")
        if self.secret and (self.default is not None or self.enum or self.pattern or self.type != "text"):
            raise ValueError("a secret has neither type, default, pattern nor enum")
        if self.optional and self.default is not None:
            raise ValueError("what has a default is optional: leave one of both out")
        return self

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            create_model("Checked", value=(Annotated[str, Field(pattern=pattern)], ...))
        except Exception as error:  # the engine of pydantic raises its own
            raise ValueError(f"{pattern!r} is not a regular expression") from error
        return pattern

    @property
    def field(self) -> tuple[Any, FieldInfo]:
        """Type and field of the model that checks it."""
        kind: Any = Reference if self.secret else TYPES[self.type]
        if self.enum is not None:
            kind = Literal[self.enum]
        elif self.pattern is not None:
            kind = Annotated[str, Field(pattern=f"^(?:{self.pattern})$")]
        said: dict[str, Any] = {"description": self.description} if self.description else {}
        if self.optional:
            return kind | None, Field(None, **said)
        return kind, Field(**said) if self.default is None else Field(self.default, validate_default=True, **said)


class Template(Declaration):
    """Entities with parameters."""

    kind: Literal["template"]
    """Says that this document is a template."""
    name: EntityName
    """Unique in its pack."""
    version: Annotated[int, Field(ge=1, strict=True)] = 1
    """Higher with each change; entities record the one that they were made from."""
    description: NonEmpty
    """What it makes, for ``falcon template list``."""
    parameters: dict[EntityName, Parameter] = Field(default_factory=dict)
    """Name -> what it may be."""
    entities: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    """Entities, in whose values ``"{{ name }}"`` stands for a parameter; or ``{for: NAME, in: PARAMETER, entities:
    [...]}``, once for each item of a list."""

    def model_of_parameters(self) -> type[BaseModel]:
        """The model that checks values of the parameters, and has their JSON Schema."""
        fields: Any = {name: one.field for name, one in self.parameters.items()}
        return create_model("Parameters", __config__=Declaration.model_config, **fields)


class Pack(Declaration):
    """Templates with one owner: the documents in its folder."""

    kind: Literal["pack"]
    """Says that this document describes the pack, in ``pack.yaml``."""
    name: EntityName
    """The first part of the names of its templates: ``PACK/TEMPLATE``."""
    description: str = ""
    """For ``falcon template list``."""
    acl: Acl | None = None
    """The owner and the group may change its templates; the last digit of ``permission`` says whether others may use
    them. Omitted: anybody may do both."""
