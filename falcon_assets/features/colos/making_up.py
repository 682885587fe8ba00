"""Making up for what colos miss, and for a journal that does not know what they have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import Engine

from falcon_assets.errors import FalconError, MissingDefinitionsError, UnknownEntityError
from falcon_assets.features.colos import store
from falcon_assets.features.colos.asking import AskedColos, ColoAwayError, UnansweredError
from falcon_assets.features.colos.rules import GivenEntity, Send, Wanted, Word, chain, given_up, in_order, row_after
from falcon_assets.features.entities import operations
from falcon_assets.features.entities.operations import ChangeDefinitions, ChangeNamed
from falcon_assets.features.entities.questions import ListEntities, ShowEntityStatus
from falcon_assets.features.entities.results import ColoAnswer, OperationResult
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.entity import Key
from falcon_assets.operations.operation import Operation

_LOG = logging.getLogger(__name__)
WORDS: Mapping[Word, type[ChangeDefinitions | ChangeNamed]] = {
    "submit": operations.SubmitEntities,
    "apply": operations.ApplyEntities,
    "update": operations.UpdateEntities,
    "submit-and-schedule": operations.SubmitAndScheduleEntities,
    "delete": operations.DeleteEntities,
    "schedule": operations.ScheduleEntities,
    "suspend": operations.SuspendEntities,
    "resume": operations.ResumeEntities,
}
CHANGES: Mapping[type[Operation], Word] = {operation: word for word, operation in WORDS.items()}
"""The operations that go to several colos, and are made up for."""


class MakingUp:
    """Brings colos up to date with the journal, and a new journal with the colos.

    Args:
        asked: The colos.
        engine: Gives the database with the journal.
    """

    def __init__(self, asked: AskedColos, engine: Callable[[], Engine]) -> None:
        self.asked, self._engine = asked, engine
        self.names = [*asked.colos]

    def read_colos(self) -> None:
        """Reads what colos have that the journal does not know at all, as far as they answer."""
        with self._engine().connect() as connection:
            unread = store.unread(connection, self.names)
        found = self.asked.each({one: partial(self._entities, one) for one in unread})
        for colo, got in found.items():
            if not isinstance(got, FalconError):
                with self._engine().begin() as connection:
                    store.adopt(connection, colo, [_adopted(colo, one) for one in got])

    def _entities(self, colo: str) -> Sequence[Mapping[str, Any]]:
        try:
            answer = self.asked.perform(self.asked.colos[colo], None, ListEntities(), only_data=True)
            found: Sequence[Mapping[str, Any]] = answer.as_data()["items"]
        except (UnknownEntityError, MissingDefinitionsError):  # nothing is on its clusters yet
            return ()
        return found

    def heal(self) -> None:
        """Makes up for what colos miss, all at once; a colo that does not answer stays as it is."""
        with self._engine().connect() as connection:
            behind = store.pending_numbers(connection)
        work = {one: partial(self.make_up, one) for one in self.names if one in behind}
        self.asked.each(work)
        self.read_colos()

    def make_up(self, colo: str, but: Collection[Key] = ()) -> None:
        """Makes up for what one colo misses, ``but`` for some; raises ColoAwayError and UnansweredError.

        All definitions go at once, as they may need each other; where they are refused, one by one.
        """
        with self._engine().connect() as connection:
            rows = [one for one in store.pending(connection, colo) if one.key not in but]
        if not rows:
            return
        with store.making_up(self._engine(), colo, (one.name for one in rows)) as names:
            with self._engine().connect() as connection:
                now = {one.key: one for one in store.pending(connection, colo)}
            rows = [now[one.key] for one in rows if one.name in names and one.key in now]
            self._make_up_all(colo, sorted(rows, key=in_order))

    def _make_up_all(self, colo: str, rows: Sequence[Wanted]) -> None:
        groups: dict[str, list[Wanted]] = {}
        for row in rows:
            groups.setdefault(f"{row.present} {row.principal}", []).append(row)
        refused = [row for those in groups.values() if self._try(colo, those) for row in those]
        for row in sorted(refused, key=in_order):
            if error := self._try(colo, [row]):
                _LOG.warning("colo %s refuses %s %r: %s", colo, row.kind, row.name, error)
                self._write([given_up(row)], ColoAnswer(colo, "refused", str(error)))

    def _try(self, colo: str, rows: Sequence[Wanted]) -> FalconError | None:
        """Returns why the colo refuses; raises where it does not answer."""
        try:
            rows = self.without_former(colo, rows)
            self.bring_about(colo, rows)
        except ColoAwayError as error:
            self._write(rows, ColoAnswer(colo, "away", str(error)))
            raise
        except UnansweredError as error:
            self._write(rows, ColoAnswer(colo, "unanswered", str(error)))
            raise
        except FalconError as error:
            return error
        self._write(rows, ColoAnswer(colo, "done", ""))
        return None

    def without_former(self, colo: str, rows: Sequence[Wanted]) -> Sequence[Wanted]:
        """Deletes what the colo has of entities that were deleted since; the rows as they are then.

        Raises as :meth:`bring_about`.
        """
        former = sorted((one for one in rows if one.is_anew), key=in_order, reverse=True)
        for row in former:
            send = Send("delete", (), (row.name,), row.kind)
            self.asked.perform(self.asked.colos[colo], _principal(row.principal), operation_of(send, row.reason))
        made = [replace(one, is_anew=False) for one in rows]
        if former:
            with self._engine().begin() as connection:
                store.write_rows(connection, {(colo, one.key): one for one in made})
        return made

    def bring_about(self, colo: str, rows: Sequence[Wanted]) -> Sequence[OperationResult]:
        """Has a colo do what rows of one user want, which are all to be there, or all not; raises as it."""
        found, at, principal = list[OperationResult](), self.asked.colos[colo], _principal(rows[0].principal)
        reason = next((one.reason for one in rows if one.reason), "")
        texts = tuple(GivenEntity(one.key, one.definition) for one in rows if one.present and one.definition)
        if texts:
            found.append(self.asked.perform(at, principal, operation_of(Send("apply", texts), reason)))
        for row in rows:
            if not row.present:
                send = Send("delete", (), (row.name,), row.kind)
                found.append(self.asked.perform(at, principal, operation_of(send, row.reason)))
            elif row.status:
                kind: Any = row.kind
                shown = self.asked.perform(at, principal, ShowEntityStatus(name=row.name, kind=kind))
                for word in chain(shown.status, row.status):
                    send = Send(word, (), (row.name,), row.kind)
                    found.append(self.asked.perform(at, principal, operation_of(send, row.reason)))
        return found

    def _write(self, rows: Sequence[Wanted], answer: ColoAnswer) -> None:
        now = datetime.now(UTC)
        with self._engine().begin() as connection:
            store.write_rows(connection, {(one.colo, one.key): row_after(one, one, answer, now) for one in rows})


def operation_of(send: Send, reason: str, *, dry_run: bool = False) -> ChangeDefinitions | ChangeNamed:
    """What a colo is asked to do."""
    made: dict[str, Any] = {"names": send.names, "reason": reason, "dry_run": dry_run}
    if send.given:
        made["definitions"] = "\n---\n".join(one.text for one in send.given)
    return WORDS[send.word](**made, **({"kind": send.kind} if send.kind else {}))


def _adopted(colo: str, one: Mapping[str, Any]) -> Wanted:
    usual = Cluster.model_fields["colo"].default
    place = one["definition"].get("colo", usual) if one["kind"] == "cluster" else ""
    return Wanted(colo, one["kind"], one["name"], version=1, present=True, place=place)


def _principal(data: Mapping[str, Any]) -> Principal | None:
    if not data:
        return None
    return Principal(data["name"], frozenset(data["groups"]), role=Role[data["role"]], way="colos")
