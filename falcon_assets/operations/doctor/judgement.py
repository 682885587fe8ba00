"""What a check says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from falcon_assets.errors import printable

_PASSWORD = re.compile(r"(://[^\s:/@]*):[^\s/]*@|((?:password|token|secret)=)[^\s&;]+", re.IGNORECASE)


class Severity(Enum):
    """How something is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and may surprise."""
    PROBLEM = "problem"
    """Something does not work."""


@dataclass(frozen=True)
class Judgement:
    """How one thing is.

    Attributes:
        status: Whether it is as it should be.
        text: What was found.
        fix: What to do; "": nothing.
    """

    status: Severity
    text: str
    fix: str = ""


def ok(text: str) -> Judgement:
    """It is as it should be."""
    return Judgement(Severity.OK, shown(text))


def warning(text: str, fix: str) -> Judgement:
    """It works, and may surprise."""
    return Judgement(Severity.WARNING, shown(text), shown(fix))


def problem(text: str, fix: str) -> Judgement:
    """It does not work."""
    return Judgement(Severity.PROBLEM, shown(text), shown(fix))


def shown(text: str) -> str:
    """The text on one line that a terminal can show, without passwords: drivers quote what they were told."""
    line = " ".join(text.split())
    return printable(_PASSWORD.sub(lambda found: f"{found[2]}***" if found[2] else f"{found[1]}:***@", line))
