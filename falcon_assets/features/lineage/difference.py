"""Differences between two versions: their definitions, code, environment, columns and inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.version_columns import OutputColumns


@dataclass(frozen=True, order=True)
class ChangedDefinition:
    """An entity whose definition differs; ``before`` and ``after`` are the versions of the definition."""

    kind: str
    name: str
    before: int
    after: int
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.kind} {self.name}: {', '.join(self.keys)}"

    def as_data(self) -> dict[str, Any]:
        versions = {"from": self.before, "to": self.after}
        return {"kind": self.kind, "name": self.name, **versions, "keys": list(self.keys)}


def changed_keys(before: Any, after: Any) -> tuple[str, ...]:
    """Returns the differing keys as dotted paths; items of a list are matched by ``name``, if all have one."""
    return tuple(_changed(before, after, ""))


def _changed(before: Any, after: Any, path: str) -> Iterator[str]:
    old, new = _by_key(before), _by_key(after)
    if old is not None and new is not None:
        for key in dict.fromkeys([*old, *new]):
            yield from _changed(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif (type(before), before) != (type(after), after):
        yield path


def _by_key(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "name" in one for one in value):
        found = {str(one["name"]): one for one in value}
        return found if len(found) == len(value) else None
    return None


Place: TypeAlias = tuple[str, str, datetime]
"""Cluster, feed, instance."""


@dataclass(frozen=True)
class CodeVersion:
    """SHA-256 hashes of definition and workflow files; ``workflow`` is None without files."""

    definition: int
    text: str | None
    workflow: str | None

    @property
    def code(self) -> str:
        return sha256(f"{self.text} {self.workflow}".encode()).hexdigest()


@dataclass(frozen=True)
class ChangedInput:
    place: Place
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """The difference of two versions of an instance; None in ``codes`` and ``columns``: not recorded."""

    before: Version
    after: Version
    codes: tuple[CodeVersion | None, CodeVersion | None]
    columns: tuple[OutputColumns | None, OutputColumns | None]
    inputs: Sequence[ChangedInput]
    definitions: Sequence[ChangedDefinition] = ()

    @property
    def causes(self) -> list[str]:
        """All recorded differences in words; empty: there are none."""
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
        found += [one.words for one in self.definitions]
        for name, (before, after) in self.environment.items():
            found.append("other packages are installed" if name == "packages" else f"{name} {before} and {after}")
        was, now = self.columns
        if was is not None and now is not None and now.differs_from(was):
            found.append("the columns, or what they are made from, differ")
        if self.inputs:
            found.append(f"{len(self.inputs)} inputs differ" if len(self.inputs) > 1 else "1 input differs")
        return found

    @property
    def environment(self) -> dict[str, tuple[str, str]]:
        return changed_environment(self.before.environment, self.after.environment)

    def as_data(self) -> dict[str, Any]:
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
        environment = {name: {"from": was, "to": now} for name, (was, now) in self.environment.items()}
        definitions = [one.as_data() for one in self.definitions]
        details = {"causes": self.causes, "definitions": definitions, "environment": environment, "inputs": inputs}
        return {"from": sides[0], "to": sides[1], **details}


def changed_environment(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, tuple[str, str]]:
    """Returns differing values by name, before and after; empty where one environment was not recorded."""
    if old is None or new is None:
        return {}
    both = {name: (str(old.get(name, "none")), str(new.get(name, "none"))) for name in dict.fromkeys((*old, *new))}
    return {name: sides for name, sides in both.items() if sides[0] != sides[1]}


def difference(
    versions: tuple[Version, Version],
    inputs: tuple[Sequence[Version], Sequence[Version]],
    codes: tuple[CodeVersion | None, CodeVersion | None],
    columns: tuple[OutputColumns | None, OutputColumns | None] = (None, None),
    definitions: Sequence[ChangedDefinition] = (),
) -> Difference:
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
    return Difference(*versions, codes, columns, changed, definitions)
