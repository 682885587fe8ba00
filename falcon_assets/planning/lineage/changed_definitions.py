"""By which keys two definitions of an entity differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class ChangedDefinition:
    """An entity whose definition was not the same when two versions were made.

    Attributes:
        kind: cluster, feed or process.
        name: Its name.
        before: The version of its definition that the one was made with.
        after: Likewise of the other.
        keys: What differs.
    """

    kind: str
    name: str
    before: int
    after: int
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        """It in words."""
        return f"{self.kind} {self.name}: {', '.join(self.keys)}"

    def as_data(self) -> dict[str, Any]:
        """It in JSON."""
        versions = {"from": self.before, "to": self.after}
        return {"kind": self.kind, "name": self.name, **versions, "keys": list(self.keys)}


def changed_keys(before: Any, after: Any) -> tuple[str, ...]:
    """The keys, with those that they are in and dots between, of which two definitions say something else.

    What is in a list goes by its ``name``, if all that is in it have one.
    """
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
