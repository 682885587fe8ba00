"""The one face of several colos: what is asked of it is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Engine

from falcon_assets.errors import (
    FalconError,
    MissingDefinitionsError,
    UnknownEntityError,
    UnknownInstanceError,
    UsageError,
)
from falcon_assets.features.colos import store
from falcon_assets.features.colos.asking import AskedColos
from falcon_assets.features.colos.changing import ColoChanges
from falcon_assets.features.colos.declaration import Colo
from falcon_assets.features.colos.making_up import CHANGES, MakingUp
from falcon_assets.features.colos.merging import asked_of_each, merged, merged_data
from falcon_assets.features.colos.operations import ColoState, ColoStates, ShowColos
from falcon_assets.features.colos.rules import Wanted
from falcon_assets.features.entities.operations import ChangeDefinitions, ChangeNamed
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.model.access import Role
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Operation
from falcon_assets.operations.request_origin import ORIGIN

_OF_FRONT = ("admin", "schema", "metrics", "doctor", "ledger", "secrets", "template")
"""First words of what is about the front itself, unless a colo is chosen."""
_OF_COLOS = ("template submit",)
"""What is about a colo none the less."""
_NAMED = ("name", "names", "process", "feed", "entity")
"""Fields with names of entities."""


class Look(NamedTuple):
    """What a look at a colo has shown: versions, how long it took, and by how many seconds its clock is ahead."""

    versions: Mapping[str, str | None]
    seconds: float
    clock_difference: float | None


class Prism:
    """The one face of several colos.

    Args:
        asked: The colos.
        engine: Gives the database with the journal.
        look: Looks at a colo; raises as a :class:`.Performer`.
    """

    def __init__(self, asked: AskedColos, engine: Callable[[], Engine], look: Callable[[Colo], Look]) -> None:
        self.asked, self._engine, self._look = asked, engine, look
        self.names = [*asked.colos]
        self.making_up = MakingUp(asked, engine)
        self._changes = ColoChanges(self.making_up, engine)

    def perform(self, installation: Installation, asked: Operation) -> Any:
        """Has colos do what is asked for, or does what is about the front itself.

        Raises as :meth:`.ColoChanges.change` and :meth:`read`; UsageError: it must be said in which colo.
        """
        if isinstance(asked, ShowColos):
            return self.states()
        if isinstance(asked, ChangeDefinitions | ChangeNamed) and type(asked) in CHANGES:
            return self._changes.change(installation, asked, self._chosen(asked))
        chosen = self._chosen(asked)
        if asked.command.split()[0] in _OF_FRONT and asked.command not in _OF_COLOS and not chosen:
            return asked.run(installation)
        if isinstance(asked, Change) or asked.role is not Role.VIEWER:
            found = chosen or self._known(asked)
            if len(found) > 1:
                raise UsageError(f"say in which colo, with --colo (colo=...): {', '.join(found)}")
            return self.read(installation, asked, found)
        return self.read(installation, asked, chosen or self.names)

    def read(self, installation: Installation, asked: Operation, colos: Sequence[str]) -> Any:
        """Merges what these colos answer; those that do not are noted in the installation.

        Raises ColoAwayError and UnansweredError where none answers, and what they say where all refuse.
        """
        who = acting(installation.settings)
        each = asked_of_each(asked, installation.settings.now()) if len(colos) > 1 else asked
        only_data = ORIGIN.get().only_data and (len(colos) == 1 or isinstance(asked, ListEntities))
        ask = partial(self.asked.perform, only_data=only_data)
        work: dict[str, Callable[[], Any]] = {one: partial(ask, self.asked.colos[one], who, each) for one in colos}
        found = self.asked.each(work)
        refused = {one: got for one, got in found.items() if isinstance(got, FalconError)}
        answered: dict[str, Any] = {one: got for one, got in found.items() if one not in refused}
        if not answered:
            said = [got for got in refused.values() if not isinstance(got, UnknownEntityError | UnknownInstanceError)]
            raise (said or [*refused.values()])[0]
        unknown = UnknownEntityError | UnknownInstanceError | MissingDefinitionsError
        installation.unanswered.update({one: str(got) for one, got in refused.items() if not isinstance(got, unknown)})
        if len(colos) == 1:
            return answered[colos[0]]
        if only_data and isinstance(asked, ListEntities):
            return merged_data(asked, [one.as_data() for one in answered.values()])
        return merged(asked, answered)

    def _chosen(self, asked: Operation) -> list[str]:
        """Raises UsageError for a colo that there is not."""
        own = getattr(asked, "colo", None)
        chosen = [*dict.fromkeys([*ORIGIN.get().colos, *([own] if own else [])])]
        for one in chosen:
            if one not in self.names:
                raise UsageError(f"there is no colo {one!r}; there is: {', '.join(self.names)}")
        return chosen

    def _known(self, asked: Operation) -> list[str]:
        """Where the entity that is asked about is to be, as far as that is known; else all colos."""
        said = next((getattr(asked, one) for one in _NAMED if getattr(asked, one, None)), ())
        names = [said] if isinstance(said, str) else [*said]
        with self._engine().connect() as connection:
            rows = store.read_journal(connection, self.names, names).rows
        there = {one.colo for one in rows if one.name in names and one.present}
        return [one for one in self.names if one in there] or self.names

    def places(self) -> Mapping[str, str]:
        """The colos of clusters, as far as they are known."""
        with self._engine().connect() as connection:
            return store.places(connection)

    def url(self, colo: str) -> str:
        """The address of the front of a colo."""
        return self.asked.colos[colo].url

    def states(self) -> ColoStates:
        """Looks at all colos."""
        found = self.asked.each({name: partial(self._look, one) for name, one in self.asked.colos.items()})
        with self._engine().connect() as connection:
            rows = store.with_problems(connection)
        return ColoStates(tuple(self._state(name, got, rows) for name, got in found.items()))

    def _state(self, name: str, got: Look | FalconError, rows: Sequence[Wanted]) -> ColoState:
        own = [one for one in rows if one.colo == name]
        problems = tuple(f"{one.kind} {one.name}: {one.problem}" for one in own if one.problem)
        pending = sum(one.is_pending for one in own)
        url = self.asked.colos[name].url
        if isinstance(got, FalconError):
            return ColoState(name, url, str(got), None, None, None, None, pending, problems)
        version, revision = got.versions.get("falcon_assets"), got.versions.get("ledger")
        seconds = round(got.seconds, 3)
        return ColoState(name, url, "", version, revision, seconds, got.clock_difference, pending, problems)
