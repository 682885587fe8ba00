"""Rules of completeness: sums of reported parts, the share, and whether it is enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from itertools import groupby
from typing import TypeAlias

from falcon_assets.model.completeness import Completeness

PartKey: TypeAlias = tuple[str, str]
"""Source and part; an empty part is the source as a whole."""
_SHOWN = Decimal("0.001")
_NAMED = 5


@dataclass(frozen=True)
class PartCounts:
    """The records of a part of an instance, as they were reported; None: nobody has."""

    expected: int | None = None
    records: int | None = None

    @property
    def is_missing(self) -> bool:
        return bool(self.expected) and (self.records or 0) < (self.expected or 0)


@dataclass(frozen=True)
class Share:
    """The records of an instance that were sent (``expected``), and those that are there; None: not known."""

    expected: int | None = None
    records: int | None = None

    @property
    def percent(self) -> Decimal | None:
        """Rounded down to three digits, so that what is shown as enough is enough; above 100: more came than sent."""
        if self.expected is None or self.records is None:
            return None
        share = Decimal(self.records * 100) / self.expected if self.expected else Decimal(100)
        return share.quantize(_SHOWN, ROUND_DOWN).normalize() + 0

    def reaches(self, at_least: Decimal) -> bool:
        if self.expected is None or self.records is None:
            return False
        return self.records * 100 >= at_least * self.expected

    @property
    def shown(self) -> str | None:
        return None if self.percent is None else f"{self.percent:f}"


def missing_parts(parts: Mapping[PartKey, PartCounts]) -> list[PartKey]:
    """Parts of which fewer records came than were sent, by source, then by part as people count."""
    return sorted((key for key, one in parts.items() if key[1] and one.is_missing), key=_in_order)


def _in_order(key: PartKey) -> tuple[str, int, str, str]:
    source, part = key
    return source, len(part) if part.isdecimal() else 0, part if part.isdecimal() else "", part


def named_parts(parts: Iterable[PartKey]) -> Iterator[str]:
    """``parts 7 and 9 of ingest-2``, for each source."""
    for source, ones in groupby(parts, key=lambda one: one[0]):
        names = [part for _, part in ones]
        shown = [*names[:_NAMED], f"{len(names) - _NAMED} more"] if len(names) > _NAMED + 1 else names
        several = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
        yield f"{'parts' if len(names) > 1 else 'part'} {several}" + (f" of {source}" if source else "")


def is_admitted(rule: Completeness, share: Share, nominal: datetime, now: datetime) -> bool:
    """Whether an instance that lies there is taken: it is complete, or was waited for as long as is allowed."""
    if share.reaches(rule.at_least):
        return True
    return rule.at_most_wait is not None and now >= nominal + rule.at_most_wait.length
