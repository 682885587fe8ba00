"""Completeness of feeds: how much of what was sent has to be there."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.reference import Reference


def _exact(value: Any) -> Any:
    """A number as it is written: 99.995 is not the nearest binary fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("must be a number")
    return Decimal(str(value))


Percentage = Annotated[Decimal, BeforeValidator(_exact), Field(gt=0, le=100)]


class SqlCount(Declaration):
    """A query that returns how many records were sent."""

    url: Reference
    """``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``: a URL of SQLAlchemy; it is read when the query is
    made, and shown nowhere."""
    query: NonEmpty
    """Returns one number, or rows of source, part and number; ``:start`` and ``:end`` are the nominal time of the
    instance and of the next one, with a time zone."""


class KafkaCount(Declaration):
    """A topic whose offsets say how many records were sent."""

    brokers: NonEmpty
    """``host:port``, several of them separated by commas."""
    topic: NonEmpty
    """Its partitions are the parts: each has the records between the offsets of the nominal time and of the next."""


class Expected(Declaration):
    """The source of the number of records that were sent; exactly one of the keys."""

    feed: EntityName | None = None
    """A feed on the same cluster with the columns ``slot`` (a time) and ``count``: the sum over all slots from the
    nominal time to the next one."""
    sql: SqlCount | None = None
    """A query of a database."""
    kafka: KafkaCount | None = None
    """The offsets of a topic."""

    @property
    def source(self) -> str:
        """Names what is asked: feeds that have it in common wait for it together."""
        return self.feed or (self.sql.url.label if self.sql else self.kafka.brokers if self.kafka else "")

    @model_validator(mode="after")
    def _one(self) -> Expected:
        if sum(one is not None for one in (self.feed, self.sql, self.kafka)) != 1:
            raise ValueError("needs exactly one of feed, sql and kafka")
        return self


def _form(value: Any) -> str:
    return "asked" if isinstance(value, dict | Expected) else "reported"


class Completeness(Declaration):
    """When an instance that lands is complete: when enough of the records that were sent are there."""

    at_least: Percentage
    """The percentage of the sent records that an available instance has at least; its flag is needed, too, if the feed
    has one. Above 0, 100 at most."""
    expected: Annotated[
        Annotated[Literal["reported"], Tag("reported")] | Annotated[Expected, Tag("asked")], Discriminator(_form)
    ]
    """``reported``: the source reports how many records it sent (``falcon feed report --expected``); else one of the
    keys below."""
    at_most_wait: Frequency | None = None
    """How long after its nominal time an instance is waited for; then it is taken as it is, and later data is late
    data. Omitted: for ever."""
