"""Changes of entities go to all colos that they concern; what a colo misses is made up for when it is back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_file
from falcon_assets.errors import (
    DefinitionStoreError,
    FalconError,
    MissingDefinitionsError,
    RefusedElsewhereError,
    UnknownEntityError,
)
from falcon_assets.features.colos import store
from falcon_assets.features.colos.asking import AskedColos, ColoAwayError, UnansweredError
from falcon_assets.features.colos.rules import (
    GivenEntity,
    Journal,
    Plan,
    Send,
    Wanted,
    Word,
    chain,
    combined,
    given_up,
    pending_rows,
    plan_definitions,
    plan_named,
    row_after,
    verdict,
)
from falcon_assets.features.entities import operations
from falcon_assets.features.entities.changes import require_definitions
from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.operations import ChangeDefinitions, ChangeNamed
from falcon_assets.features.entities.questions import ListEntities, ShowEntityStatus
from falcon_assets.features.entities.results import ColoAnswer, OperationResult
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.entity import Key
from falcon_assets.operations.audit import Audit, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Operation

_LOG = logging.getLogger(__name__)
_CONFLICT = 409
_LATER = "it is made up for when the colo answers"
_WORDS: Mapping[Word, type[ChangeDefinitions | ChangeNamed]] = {
    "submit": operations.SubmitEntities,
    "apply": operations.ApplyEntities,
    "update": operations.UpdateEntities,
    "submit-and-schedule": operations.SubmitAndScheduleEntities,
    "delete": operations.DeleteEntities,
    "schedule": operations.ScheduleEntities,
    "suspend": operations.SuspendEntities,
    "resume": operations.ResumeEntities,
}
CHANGES: Mapping[type[Operation], Word] = {operation: word for word, operation in _WORDS.items()}
"""The operations that go to several colos, and are made up for."""


class RefusedByColosError(RefusedElsewhereError):
    """Every colo that answered has refused; nothing was changed, and nothing is made up for."""

    def __init__(self, answers: Sequence[ColoAnswer], status: int) -> None:
        self.answers = answers
        super().__init__("; ".join(f"{one.colo}: {one.message}" for one in answers), status)


class Prism:
    """The one face of several colos.

    Args:
        asked: The colos.
        engine: Gives the database with the journal.
    """

    def __init__(self, asked: AskedColos, engine: Callable[[], Engine]) -> None:
        self.asked, self._engine = asked, engine
        self.names = [*asked.colos]

    def change(self, installation: Installation, asked: ChangeDefinitions | ChangeNamed) -> OperationResult:
        """Has the colos make a change.

        Raises:
            InvalidDefinitionsError: a definition cannot be read.
            UnknownEntityError: it is in none of the colos, or on a cluster that is in none.
            RefusedByColosError: no colo makes it.
            LockedError: somebody else is changing the same entities.
        """
        word = CHANGES[type(asked)]
        with audited(installation, word, asked) as audit:
            given = _given(asked)
            names = [*(one.key[1] for one in given), *asked.names]
            self.read_colos()
            with store.changing(self._engine(), names):
                with self._engine().connect() as connection:
                    journal = store.read_journal(connection, self.names, names)
                plan = self._plan(word, given, asked, journal)
                audit.about({key for sends in plan.values() for send in sends for key in send.keys})
                found = self._changed(plan, journal, asked, audit)
            audit.result(found.changed)
        return found

    def _plan(
        self, word: Word, given: Sequence[GivenEntity], asked: ChangeDefinitions | ChangeNamed, journal: Journal
    ) -> Plan:
        parts: list[Plan] = []
        if word == "delete":
            for kind in dict.fromkeys(one.key[0] for one in given):
                parts.append(plan_named(word, [one.key[1] for one in given if one.key[0] == kind], kind, journal))
        elif given:
            parts.append(plan_definitions(word, given, journal))
        if asked.names:
            parts.append(plan_named(word, asked.names, asked.kind, journal))
        return {colo: [send for one in parts for send in one.get(colo, ())] for colo in _in_order(self.names, parts)}

    def _changed(
        self, plan: Plan, journal: Journal, asked: ChangeDefinitions | ChangeNamed, audit: Audit
    ) -> OperationResult:
        wanted = {} if asked.dry_run else pending_rows(plan, journal, _as_data(audit.principal), asked.reason)
        before = {(one.colo, one.key): one for one in journal.rows}
        if wanted:
            with self._engine().begin() as connection:  # also if this process ends now, it will be done
                store.write_rows(connection, wanted)

        def work(colo: str, sends: Sequence[Send]) -> Callable[[], list[OperationResult | FalconError]]:
            def run() -> list[OperationResult | FalconError]:
                if not asked.dry_run:
                    self.make_up(colo, but={key for its, key in wanted if its == colo})
                operations = [_operation(one, asked.reason, dry_run=asked.dry_run) for one in sends]
                return self._performed(colo, audit.principal, operations)

            return run

        got = self.asked.each({colo: work(colo, sends) for colo, sends in plan.items()})
        results = {colo: one if isinstance(one, list) else [one] * len(plan[colo]) for colo, one in got.items()}
        found = {
            colo: [self._answer(colo, one, is_kept=bool(send.keys) and not asked.dry_run) for send, one in pairs]
            for colo, pairs in ((colo, zip(plan[colo], results[colo], strict=True)) for colo in plan)
        }
        answers = [combined(colo, those) for colo, those in found.items()]
        said, now = verdict(answers), datetime.now(UTC)
        after = dict[tuple[str, Key], Wanted | None]()
        for colo, sends in plan.items() if wanted else ():
            for send, answer in zip(sends, found[colo], strict=True):
                for key in send.keys:
                    old = before.get((colo, key))
                    is_off = said in ("FAILED", "ABSENT")
                    after[colo, key] = old if is_off else row_after(old, wanted[colo, key], answer, now)
        if after:
            with self._engine().begin() as connection:
                store.write_rows(connection, after)
        if said == "ABSENT":
            raise UnknownEntityError(answers[0].message)
        if said == "FAILED":
            raise _refusal(answers, [one for those in results.values() for one in those])
        return _merged(asked, audit, answers, [one for those in results.values() for one in those])

    def _performed(
        self, colo: str, principal: Principal, operations: Sequence[Operation]
    ) -> list[OperationResult | FalconError]:
        """The result of each; after a colo did not answer, it is not asked again."""
        made: list[OperationResult | FalconError] = []
        for one in operations:
            if made and isinstance(made[-1], ColoAwayError | UnansweredError):
                made.append(made[-1])
                continue
            try:
                made.append(self.asked.perform(self.asked.colos[colo], principal, one))
            except FalconError as error:
                made.append(error)
        return made

    def _answer(self, colo: str, got: OperationResult | FalconError, *, is_kept: bool) -> ColoAnswer:
        match got:
            case ColoAwayError() if is_kept:
                return ColoAnswer(colo, "away", f"{got}: {_LATER}")
            case UnansweredError() if is_kept:
                return ColoAnswer(colo, "unanswered", f"{got}: {_LATER}")
            case UnknownEntityError():
                return ColoAnswer(colo, "absent", str(got))
            case FalconError():
                return ColoAnswer(colo, "refused", str(got))
        if got.changed or got.dry_run:
            return ColoAnswer(colo, "done", f"done; {got.reload}" if got.reload else "done")
        return ColoAnswer(colo, "unchanged", "nothing to do")

    def read_colos(self) -> None:
        """Reads what colos have that the journal does not know at all, as far as they answer."""
        with self._engine().connect() as connection:
            unread = store.read_journal(connection, self.names, ()).unread
        found = self.asked.each({one: partial(self._entities, one) for one in unread})
        for colo, got in found.items():
            if not isinstance(got, FalconError):
                with self._engine().begin() as connection:
                    store.adopt(connection, colo, [_adopted(colo, one) for one in got])

    def _entities(self, colo: str) -> Sequence[Entity]:
        try:
            found: Sequence[Entity] = self.asked.perform(self.asked.colos[colo], None, ListEntities()).items
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
        with store.changing(self._engine(), (one.name for one in rows), waits=False) as alone:
            if not alone:
                return
            with self._engine().connect() as connection:
                now = {one.key: one for one in store.pending(connection, colo)}
            rows = [now[one.key] for one in rows if one.key in now]
            try:
                self._make_up_all(colo, rows)
            except (ColoAwayError, UnansweredError) as error:
                outcome = ColoAnswer(colo, "away" if isinstance(error, ColoAwayError) else "unanswered", str(error))
                self._write(rows, outcome)
                raise

    def _make_up_all(self, colo: str, rows: Sequence[Wanted]) -> None:
        by_asker: dict[str, list[Wanted]] = {}
        for row in rows:
            by_asker.setdefault(f"{row.present} {row.principal}", []).append(row)
        for those in by_asker.values():
            try:
                self._bring_about(colo, those)
            except (ColoAwayError, UnansweredError):
                raise
            except FalconError:
                for row in those:
                    self._try(colo, row)
            else:
                self._write(those, ColoAnswer(colo, "done", ""))

    def _try(self, colo: str, row: Wanted) -> None:
        try:
            self._bring_about(colo, [row])
        except (ColoAwayError, UnansweredError):
            raise
        except FalconError as error:
            _LOG.warning("colo %s refuses %s %r: %s", colo, row.kind, row.name, error)
            self._write([given_up(row)], ColoAnswer(colo, "refused", str(error)))
        else:
            self._write([row], ColoAnswer(colo, "done", ""))

    def _bring_about(self, colo: str, rows: Sequence[Wanted]) -> None:
        """What rows of one user want, which are all to be there, or all not."""
        at, principal = self.asked.colos[colo], _principal(rows[0].principal)
        reason = next((one.reason for one in rows if one.reason), "")
        texts = tuple(GivenEntity(one.key, one.definition) for one in rows if one.present and one.definition)
        if texts:
            self.asked.perform(at, principal, _operation(Send("apply", texts), reason))
        for row in rows:
            if not row.present:
                self.asked.perform(at, principal, _operation(Send("delete", (), (row.name,), row.kind), row.reason))
            elif row.status:
                kind: Any = row.kind
                shown = self.asked.perform(at, principal, ShowEntityStatus(name=row.name, kind=kind))
                for word in chain(shown.status, row.status):
                    self.asked.perform(at, principal, _operation(Send(word, (), (row.name,), row.kind), row.reason))

    def _write(self, rows: Sequence[Wanted], answer: ColoAnswer) -> None:
        now = datetime.now(UTC)
        with self._engine().begin() as connection:
            store.write_rows(connection, {(one.colo, one.key): row_after(one, one, answer, now) for one in rows})


def _given(asked: ChangeDefinitions | ChangeNamed) -> list[GivenEntity]:
    """The entities that a request defines; raises InvalidDefinitionsError and DefinitionStoreError."""
    if not isinstance(asked, ChangeDefinitions) or not asked.definitions:
        return []
    files = Files()
    read_file(Path("definitions"), asked.definitions.encode(errors="surrogatepass"), files)
    tree = Stored(Path(), files)
    require_definitions(tree)
    found = {}
    for one in files.documents:
        entity = _entity(tree, one)
        if entity.key in found:
            raise DefinitionStoreError(f"{entity.key[0]} {entity.key[1]!r} is defined twice: give it once")
        found[entity.key] = entity
    return [*found.values()]


def _entity(tree: Stored, document: Document) -> GivenEntity:
    data = document.data
    clusters = data.get("clusters") if data["kind"] in ("feed", "process") else ()
    colo = data.get("colo", Cluster.model_fields["colo"].default) if data["kind"] == "cluster" else ""
    return GivenEntity((data["kind"], data["name"]), tree.text(document), colo, tuple(one["name"] for one in clusters))


def _operation(send: Send, reason: str, *, dry_run: bool = False) -> ChangeDefinitions | ChangeNamed:
    made: dict[str, Any] = {"names": send.names, "reason": reason, "dry_run": dry_run}
    if send.given:
        made["definitions"] = "\n---\n".join(one.text for one in send.given)
    return _WORDS[send.word](**made, **({"kind": send.kind} if send.kind else {}))


def _in_order(names: Sequence[str], parts: Sequence[Plan]) -> Iterator[str]:
    yield from (one for one in names if any(one in part for part in parts))


def _adopted(colo: str, one: Entity) -> Wanted:
    place = one.declared.colo if isinstance(one.declared, Cluster) else ""
    return Wanted(colo, one.kind, one.name, version=1, present=True, place=place)


def _as_data(who: Principal) -> dict[str, object]:
    return {"name": who.name, "role": who.role.name, "groups": sorted(who.groups)}


def _principal(data: Mapping[str, Any]) -> Principal | None:
    if not data:
        return None
    return Principal(data["name"], frozenset(data["groups"]), role=Role[data["role"]], way="colos")


def _refusal(answers: Sequence[ColoAnswer], results: Sequence[OperationResult | FalconError]) -> FalconError:
    """As the colo said it, where it is the only one."""
    refused = [one for one in results if isinstance(one, FalconError) and not isinstance(one, ColoAwayError)]
    if len(answers) == 1:
        return refused[0]
    statuses = {getattr(one, "status", _CONFLICT) for one in refused}
    return RefusedByColosError(
        [one for one in answers if one.is_missing], statuses.pop() if len(statuses) == 1 else _CONFLICT
    )


def _merged(
    asked: Change, audit: Audit, answers: Sequence[ColoAnswer], got: Sequence[OperationResult | FalconError]
) -> OperationResult:
    """The results of colos as one: each entity once, with what was done where anything was."""
    results = [one for one in got if isinstance(one, OperationResult)]
    entities: dict[Key, Any] = {}
    for one in (change for result in results for change in result.entities):
        if (one.kind, one.name) not in entities or entities[one.kind, one.name].action == "unchanged":
            entities[one.kind, one.name] = one
    statuses: dict[Key, Any] = {}
    for before, after in (pair for result in results for pair in result.statuses):
        if (after.kind, after.name) not in statuses or before != after:
            statuses[after.kind, after.name] = before, after
    fields = (audit.operation, audit.principal.name, asked.reason, audit.installation.settings.now(), asked.dry_run)
    return OperationResult(
        *fields,
        entities=tuple(entities.values()),
        diff="".join(dict.fromkeys(one.diff for one in results)),
        warnings=tuple(dict.fromkeys(warning for one in results for warning in one.warnings)),
        statuses=tuple(statuses.values()),
        touches=tuple(sorted({touched for one in results for touched in one.touches})),
        colos=tuple(answers),
    )
