"""Why two versions of an instance differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.lineage.graph import Version

Place: TypeAlias = tuple[str, str, datetime]
"""Cluster, feed, instance."""


@dataclass(frozen=True)
class CodeVersion:
    """What a version was made with.

    Attributes:
        definition: The version of the definition.
        text: SHA-256 of its text.
        workflow: SHA-256 of the files of its workflows; None: it has none.
    """

    definition: int
    text: str | None
    workflow: str | None

    @property
    def code(self) -> str:
        """One hash of both."""
        return sha256(f"{self.text} {self.workflow}".encode()).hexdigest()


@dataclass(frozen=True)
class ChangedInput:
    """An instance of which two versions were made from different versions, or one of them from none."""

    place: Place
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Why two versions of an instance differ.

    Attributes:
        before: The one.
        after: The other.
        codes: What they were made with; None: not recorded.
        inputs: What they were made from, where that differs.
    """

    before: Version
    after: Version
    codes: tuple[CodeVersion | None, CodeVersion | None]
    inputs: Sequence[ChangedInput]

    @property
    def causes(self) -> list[str]:
        """In words: what of process, definition, workflow and inputs is not the same; none: all that is recorded is."""
        old, new = self.before, self.after
        found = []
        if old.process != new.process:
            found.append(f"made by {old.process or 'nobody'} and by {new.process or 'nobody'}")
        if old.definition != new.definition:
            found.append(f"definition {old.definition or 'unknown'} and {new.definition or 'unknown'}")
        texts, workflows = zip(*((one.text, one.workflow) if one else (None, None) for one in self.codes), strict=True)
        if texts[0] != texts[1]:
            found.append("the text of the definition changed")
        if workflows[0] != workflows[1]:
            found.append("the files of the workflow changed")
        if self.inputs:
            found.append(f"{len(self.inputs)} inputs differ" if len(self.inputs) > 1 else "1 input differs")
        return found

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        sides = [
            {**version.as_data(), "code": code.code if code else None}
            for version, code in zip((self.before, self.after), self.codes, strict=True)
        ]
        inputs = [
            {
                **dict(zip(("cluster", "feed"), one.place[:2], strict=True)),
                "instance": format_instant(one.place[2]),
                "from": list(one.before),
                "to": list(one.after),
            }
            for one in self.inputs
        ]
        return {"from": sides[0], "to": sides[1], "causes": self.causes, "inputs": inputs}


def difference(
    versions: tuple[Version, Version],
    inputs: tuple[Sequence[Version], Sequence[Version]],
    codes: tuple[CodeVersion | None, CodeVersion | None],
) -> Difference:
    """Compares two versions.

    Args:
        versions: The older one first.
        inputs: What each was made from.
        codes: What each was made with.
    """
    read: list[dict[Place, tuple[str, ...]]] = []
    for side in inputs:
        found: dict[Place, tuple[str, ...]] = {}
        for one in sorted(side, key=lambda one: one.version):
            place = (one.cluster, one.feed, one.instance)
            found[place] = (*found.get(place, ()), one.version)
        read.append(found)
    old, new = read
    changed = [
        ChangedInput(place, old.get(place, ()), new.get(place, ()))
        for place in sorted(old.keys() | new.keys())
        if old.get(place) != new.get(place)
    ]
    return Difference(*versions, codes, changed)
