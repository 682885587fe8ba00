"""The verdict about an instance: what its checks say together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from falcon_assets.features.quality.profile import ColumnProfile
from falcon_assets.model.quality_check import Figures, QualityCheck
from falcon_assets.operations.operation import Result


class InstanceVerdict(str, Enum):
    VALID = "VALID"
    INVALID = "INVALID"
    UNCHECKED = "UNCHECKED"
    """Its feed has checks, and nobody knows yet what they say of this version."""


@dataclass(frozen=True)
class Measured:
    """Figures by title of the check, and problems of those that cannot be measured."""

    records: int
    figures: Mapping[str, Figures]
    problems: Mapping[str, str] = field(default_factory=dict)
    profile: tuple[ColumnProfile, ...] | None = None


@dataclass(frozen=True)
class QualityResult(Result):
    """What a check found; ``problem``: why it could not be measured, which counts as failed."""

    name: str
    rule: str
    severity: str
    passed: bool
    said: str
    figures: dict[str, Any] = field(default_factory=dict)
    problem: bool = False

    @property
    def is_error(self) -> bool:
        return not self.passed and self.severity == "error"


def verdict_of(results: Iterable[QualityResult]) -> InstanceVerdict:
    return InstanceVerdict.INVALID if any(one.is_error for one in results) else InstanceVerdict.VALID


def judged(
    checks: Iterable[QualityCheck], measured: Measured, nominal: datetime, past: Mapping[str, Sequence[Figures]]
) -> Iterator[QualityResult]:
    """``past``: title of a check -> its figures of valid instances before this one, the newest first."""
    for one in checks:
        about = (one.title, one.rule, one.severity)
        if one.title in measured.problems:
            yield QualityResult(*about, passed=False, said=measured.problems[one.title], problem=True)
        else:
            found = one.judge(measured.figures[one.title], nominal, past.get(one.title, ()))
            yield QualityResult(*about, found.passed, found.said, dict(found.figures))
