"""Parts that entities of several kinds have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.expression import nearest
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.model.wall_clock import zones


def _octal(permission: str) -> str:
    """Apache Falcon's definitions write octal digits behind ``0x``."""
    return permission.replace("0x", "0", 1)


class Acl(Declaration):
    """The owner of an entity and its data, and permissions."""

    owner: NonEmpty
    """User name: who may change the entity. Shown as the asset's owner: an e-mail address as it is, any other name as
    a team."""
    group: str = ""
    """Group name: its members may change the entity, too."""
    permission: Annotated[str, StringConstraints(pattern=r"^((0x?)?[0-7]{3}|\*)$"), AfterValidator(_octal)] = "0755"
    """Octal mode of what is published, in quotes (``"0755"``; Falcon's ``"0x755"`` is the same), or ``*``: left
    alone. Files get no execute bits. Its last digit says whether others may read the entity."""


class TemplateUse(Declaration):
    """The template that an entity was made from, as ``falcon template`` writes it."""

    name: NonEmpty
    """Pack and name: ``falcon/mirror-folder``."""
    version: Annotated[int, Field(ge=1, strict=True)]
    """Of the template, when it was used last."""
    parameters: dict[NonEmpty, Any] = Field(default_factory=dict)
    """The parameters that were given, without secrets."""


FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Of the first instance; the last may be in any year after it."""


def _can_be_named(start: datetime) -> datetime:
    """Dagster names partitions by four digits of a year, and computes some steps beyond the first instance."""
    if not FIRST_YEAR <= start.year <= LAST_YEAR:
        years = f"the years {FIRST_YEAR} to {LAST_YEAR}"
        raise ExpressionError(f"{format_instant(start)!r} is not legal: the first instance must be in {years}")
    return start


class Validity(Declaration):
    """The half-open span ``start <= T < end`` in which instances exist."""

    start: Annotated[Instant, AfterValidator(_can_be_named)]
    """Nominal time of the first instance, in the years 1000 to 9000; every other is a whole number of frequencies
    later."""
    end: Instant
    """No instance at or after it; ``9999-12-31T23:59Z`` means for ever."""

    @model_validator(mode="after")
    def _ordered(self) -> Validity:
        if self.start >= self.end:
            raise ValueError(f"start {format_instant(self.start)} must be before end {format_instant(self.end)}")
        return self

    def contains(self, moment: datetime) -> bool:
        """Whether ``start <= moment < end``."""
        return self.start <= moment < self.end


def _known_zone(name: str) -> str:
    if name not in zones():
        raise ExpressionError(f"{name!r} is not an IANA time zone{nearest(name, zones())}")
    return name


TimeZoneName = Annotated[str, AfterValidator(_known_zone), Field(examples=["UTC", "America/New_York"])]
"""A field that holds an IANA time zone."""


Properties = dict[NonEmpty, str]
"""Free ``name: "value"`` pairs; values are texts and may hold ``${...}``."""

Tags = dict[NonEmpty, str]
"""Free ``name: value`` pairs for search; they become tags of the assets."""
