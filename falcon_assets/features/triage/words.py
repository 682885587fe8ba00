"""Causes in words, and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from falcon_assets.errors import count_of, printable
from falcon_assets.features.triage.tree import Cause
from falcon_assets.model.instant import format_instant

_MARKUP = re.compile(r"([\\`*_\[\]<>|~])")


def subject(cause: Cause) -> str:
    kind = "" if cause.kind == "process" else f"{cause.kind} "
    when = f" {format_instant(cause.first)}" if cause.first else ""
    return f"{kind}{cause.name}{when}" + (f" on {cause.cluster}" if cause.cluster else "")


def reason(cause: Cause) -> str:
    return f": {printable(str(cause.reason))}" if cause.reason else ""


def notes(cause: Cause) -> Iterator[str]:
    if cause.count > 1 and cause.last:
        yield f"... and {cause.count - 1:,} more like this one, the last is {format_instant(cause.last)}"
    if cause.is_told:
        yield "its causes are shown above"
    if cause.between:
        yield f"{count_of(cause.between, 'instance')} between it and the first ones wait for each other"
    if cause.more:
        yield f"... and {count_of(cause.more, 'other cause')}"


def as_markdown(cause: Cause) -> str:
    """Returns nested lists, with the fixes as code; empty: there are no causes."""
    return "\n".join(line for one in cause.causes for line in _lines(one, ""))


def _lines(cause: Cause, indent: str) -> Iterator[str]:
    yield f"{indent}- {_escaped(subject(cause))} **{_escaped(cause.state)}**{_escaped(reason(cause))}"
    for note in notes(cause):
        yield f"{indent}    - {_escaped(note)}"
    if cause.fix:
        yield f"{indent}    - fix: `{cause.fix}`"
    for one in cause.causes:
        yield from _lines(one, f"{indent}    ")


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
