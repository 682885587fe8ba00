"""Random changes of entities in colos, and the model of what each colo must finally have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import yaml

from tests.builders import cluster_yaml, feed_yaml, on, process_yaml

Key = tuple[str, str]
NAMES = ("a", "b", "c", "d")


class Entity(NamedTuple):
    """``status`` None: of what has none."""

    definition: dict[str, Any]
    status: str | None


class Asked(NamedTuple):
    """A request, and what colos have where it is accepted.

    Attributes:
        number: Of the request, which is its reason and in all its definitions.
        expected: What its answer may be.
    """

    number: int
    word: str
    method: str
    path: str
    body: dict[str, Any]
    expected: Sequence[int]


@dataclass
class Model:
    """What each colo is to have, by kind and name.

    Attributes:
        written: Colo, kind and name -> the numbers of requests that brought a definition there, in their order.
    """

    colos: Sequence[str]
    random: Random
    there: dict[str, dict[Key, Entity]] = field(default_factory=dict)
    written: dict[tuple[str, Key], list[int]] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.there = {one: {} for one in self.colos}

    def begin(self) -> Asked:
        """The clusters, of which each colo has one."""
        self.number += 1
        lakes = [self._lake(one) for one in self.colos]
        return self._definitions("submit", lakes, dict.fromkeys(_keys(lakes), self.colos))

    def change(self) -> Asked:
        """A request that must be accepted, or one that must not, if nothing of it is anywhere."""
        self.number += 1
        some = [self._submit, self._apply, self._update, self._delete, self._status, self._cluster] * 3
        while (found := self.random.choice([*some, self._unknown])()) is None:
            pass
        return found

    def _submit(self) -> Asked | None:
        free = [one for one in NAMES if not self.places(("feed", one))]
        if not free:
            return None
        word = self.random.choice(["submit", "submit-and-schedule"])
        return self._put(word, self.random.choice(free), self.some())

    def _apply(self) -> Asked:
        return self._put("apply", self.random.choice(NAMES), self.some())

    def _update(self) -> Asked | None:
        known = [one for one in NAMES if self.places(("feed", one))]
        return self._put("update", self.random.choice(known), self.some()) if known else None

    def _put(self, word: str, name: str, colos: Sequence[str]) -> Asked:
        """A feed, with the process that reads it where there is one, and sometimes with a new one."""
        reader = ("process", f"of-{name}")
        clusters = [on(_cluster_of(one)) for one in colos]
        texts = [feed_yaml(name, *clusters, description=self._mark())]
        if self.places(reader) or (word != "update" and self.random.random() < 1 / 2):
            texts.append(process_yaml(f"of-{name}", name, None, *clusters, description=self._mark()))
        return self._definitions(word, texts, dict.fromkeys(_keys(texts), colos))

    def _cluster(self) -> Asked:
        lakes = [self._lake(self.random.choice(self.colos))]
        return self._definitions("apply", lakes, dict.fromkeys(_keys(lakes), self.colos))

    def _delete(self) -> Asked | None:
        known = [
            key for key in self._scheduled() if key[0] == "process" or not self.places(("process", f"of-{key[1]}"))
        ]
        if not known:
            return None
        kind, name = key = self.random.choice(known)
        for one in self.places(key):
            del self.there[one][key]
        return self._named("delete", "DELETE", f"/entities/{name}", kind)

    def _status(self) -> Asked | None:
        choices = [
            (key, word)
            for key in self._scheduled()
            for word, before in _FITTING.items()
            if {str(self.there[one][key].status) for one in self.places(key)} <= before
        ]
        if not choices:
            return None
        key, word = self.random.choice(choices)
        for one in self.places(key):
            self.there[one][key] = self.there[one][key]._replace(status=_AFTER[word])
        return self._named(word, "POST", f"/entities/{key[1]}/{word}", key[0])

    def _unknown(self) -> Asked:
        return self._named("schedule", "POST", "/entities/nothing/schedule", "feed")._replace(expected=(404,))

    def _definitions(self, word: str, texts: Sequence[str], to: Mapping[Key, Sequence[str]]) -> Asked:
        for one in map(yaml.safe_load, texts):
            key = one["kind"], one["name"]
            for colo in self.colos:
                before = self.there[colo].pop(key, None)
                if colo in to[key]:
                    status = before.status if before else "SUBMITTED" if key[0] in ("feed", "process") else None
                    status = "RUNNING" if word == "submit-and-schedule" else status
                    self.there[colo][key] = Entity(one, status)
                    self.written.setdefault((colo, key), []).append(self.number)
        method, path = {"submit": ("POST", ""), "update": ("PUT", "")}.get(word, ("POST", f":{word}"))
        body = {"definitions": "".join(texts), "reason": self._mark()}
        return Asked(self.number, word, method, f"/entities{path}", body, (200, 207))

    def _named(self, word: str, method: str, path: str, kind: str) -> Asked:
        return Asked(self.number, word, method, path, {"kind": kind, "reason": self._mark()}, (200, 207))

    def places(self, key: Key) -> list[str]:
        return [one for one in self.colos if key in self.there[one]]

    def some(self) -> list[str]:
        """Colos, in their order."""
        chosen = self.random.sample(self.colos, self.random.randint(1, len(self.colos)))
        return [one for one in self.colos if one in chosen]

    def _scheduled(self) -> list[Key]:
        return sorted({key for those in self.there.values() for key, one in those.items() if one.status})

    def _lake(self, colo: str) -> str:
        return cluster_yaml(_cluster_of(colo), colo=colo, tags={"request": self._mark()})

    def _mark(self) -> str:
        return f"request {self.number}"


_FITTING = {
    "schedule": {"SUBMITTED", "RUNNING"},
    "suspend": {"RUNNING", "SUSPENDED"},
    "resume": {"SUSPENDED", "RUNNING"},
}
_AFTER = {"schedule": "RUNNING", "suspend": "SUSPENDED", "resume": "RUNNING"}


def _cluster_of(colo: str) -> str:
    return f"{colo}-disk"


def _keys(texts: Sequence[str]) -> list[Key]:
    return [(one["kind"], one["name"]) for one in map(yaml.safe_load, texts)]
