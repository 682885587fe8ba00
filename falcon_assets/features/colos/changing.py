"""Changes of entities: they go to all colos that they concern, at once, and what one misses is kept for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Engine

from falcon_assets.base.texts import without_credentials
from falcon_assets.catalog.checked_entities import secrets_in
from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_file
from falcon_assets.errors import (
    DefinitionStoreError,
    FalconError,
    RefusedElsewhereError,
    UnknownEntityError,
    UsageError,
)
from falcon_assets.features.colos import store
from falcon_assets.features.colos.asking import ColoAwayError, UnansweredError
from falcon_assets.features.colos.making_up import CHANGES, MakingUp, operation_of
from falcon_assets.features.colos.rules import (
    KIND_ORDER,
    GivenEntity,
    Journal,
    Plan,
    Send,
    Wanted,
    Word,
    combined,
    in_order,
    pending_rows,
    plan_definitions,
    plan_named,
    row_after,
    verdict,
    why_not_kept,
)
from falcon_assets.features.entities.changes import require_definitions
from falcon_assets.features.entities.operations import ChangeDefinitions, ChangeNamed
from falcon_assets.features.entities.results import ColoAnswer, OperationResult
from falcon_assets.model.access import Principal
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.entity import KINDS, Key
from falcon_assets.operations.audit import Audit, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change

_CONFLICT = 409
_LATER = "it is made up for when the colo takes it"
_AGAIN = "it is not made up for: ask again when the colo answers"
_Made: TypeAlias = Sequence[OperationResult] | FalconError
"""What a request has come to in a colo."""


class RefusedByColosError(RefusedElsewhereError):
    """Every colo that answered has refused; nothing was changed, and nothing is made up for."""

    def __init__(self, answers: Sequence[ColoAnswer], status: int) -> None:
        self.answers = answers
        super().__init__("; ".join(f"{one.colo}: {one.message}" for one in answers), status)


class ColoChanges:
    """Has colos make changes.

    Args:
        making_up: What one misses is kept for.
        engine: Gives the database with the journal.
    """

    def __init__(self, making_up: MakingUp, engine: Callable[[], Engine]) -> None:
        self._making_up, self._engine = making_up, engine
        self._asked, self._names = making_up.asked, making_up.names

    def change(
        self, installation: Installation, asked: ChangeDefinitions | ChangeNamed, chosen: Collection[str]
    ) -> OperationResult:
        """Has the colos make a change, only the ``chosen`` ones where there are any.

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
            self._making_up.read_colos()
            with store.changing(self._engine(), names):
                with self._engine().connect() as connection:
                    journal = store.read_journal(connection, self._names, names)
                    behind = store.pending_numbers(connection)
                plan = self._plan(word, given, asked, journal)
                if chosen:
                    plan = {colo: sends for colo, sends in plan.items() if colo in chosen}
                    if not plan:
                        raise UsageError(f"that is not in {', '.join(chosen)}: leave --colo (colo=...) out")
                audit.about({key for sends in plan.values() for send in sends for key in send.keys})
                found = self._changed(plan, journal, behind, asked, audit)
            audit.result(found.changed)
        return found

    def _plan(
        self, word: Word, given: Sequence[GivenEntity], asked: ChangeDefinitions | ChangeNamed, journal: Journal
    ) -> Plan:
        parts: list[Plan] = []
        if word == "delete":
            for kind in reversed([one for one in KIND_ORDER if one in {entity.key[0] for entity in given}]):
                parts.append(plan_named(word, [one.key[1] for one in given if one.key[0] == kind], kind, journal))
        elif given:
            parts.append(plan_definitions(word, given, journal))
        if asked.names:
            parts.append(plan_named(word, asked.names, asked.kind, journal))
        return {colo: [send for one in parts for send in one.get(colo, ())] for colo in _in_order(self._names, parts)}

    def _changed(
        self,
        plan: Plan,
        journal: Journal,
        behind: Collection[str],
        asked: ChangeDefinitions | ChangeNamed,
        audit: Audit,
    ) -> OperationResult:
        wanted = {} if asked.dry_run else {**pending_rows(plan, journal, _as_data(audit.principal), asked.reason)}
        kept = {place: row for place, row in wanted.items() if row.is_pending}
        before = {(one.colo, one.key): one for one in journal.rows}
        if kept:
            with self._engine().begin() as connection:  # also if this process ends now, it will be done
                store.write_rows(connection, kept)

        def work(colo: str, sends: Sequence[Send]) -> Callable[[], list[_Made]]:
            lacking = {key for its, key in kept if its == colo and (its, key) in before and before[its, key].is_pending}

            def perform(send: Send) -> Sequence[OperationResult]:
                made = list[OperationResult]()
                if lacking & {*send.keys}:  # it lacks more than this
                    rows = sorted((kept[colo, key] for key in send.keys if (colo, key) in kept), key=in_order)
                    rows = [*self._making_up.without_former(colo, rows)]
                    wanted.update({(colo, one.key): one for one in rows})
                    made += self._making_up.bring_about(colo, rows)
                if not lacking & {*send.keys} or any((colo, key) not in kept for key in send.keys):
                    operation = operation_of(send, asked.reason, dry_run=asked.dry_run)
                    made.append(self._asked.perform(self._asked.colos[colo], audit.principal, operation))
                return made

            def run() -> list[_Made]:
                if colo in behind and not asked.dry_run:
                    self._making_up.make_up(colo, but={key for its, key in kept if its == colo})
                return _each(sends, perform)

            return run

        got = self._asked.each({colo: work(colo, sends) for colo, sends in plan.items()})
        results = {colo: one if isinstance(one, list) else [one] * len(plan[colo]) for colo, one in got.items()}
        found = dict[str, list[ColoAnswer]]()
        for colo, sends in plan.items():
            later = ["" if asked.dry_run else _later(send, colo, wanted) for send in sends]
            found[colo] = [_answer(colo, one, its) for one, its in zip(results[colo], later, strict=True)]
        answers = [combined(colo, those) for colo, those in found.items()]
        said, now = verdict(answers, is_kept=bool(kept)), datetime.now(UTC)
        after = dict[tuple[str, Key], Wanted | None]()
        for colo, sends in plan.items() if wanted else ():
            for send, answer in zip(sends, found[colo], strict=True):
                for key in (one for one in send.keys if (colo, one) in wanted):
                    old = before.get((colo, key))
                    if (colo, key) not in kept and not _is_noted(old, answer):
                        continue
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


def _later(send: Send, colo: str, wanted: Mapping[tuple[str, Key], Wanted]) -> str:
    """What becomes of a request that a colo does not take now."""
    is_kept = any((colo, key) in wanted and wanted[colo, key].is_pending for key in send.keys)
    why_not = why_not_kept(send, colo, wanted)
    return "; ".join(filter(None, [_LATER if is_kept else "", why_not])) or _AGAIN


def _answer(colo: str, got: _Made, later: str) -> ColoAnswer:
    match got:
        case ColoAwayError():
            return ColoAnswer(colo, "away", ": ".join(filter(None, [str(got), later])))
        case UnansweredError():
            return ColoAnswer(colo, "unanswered", ": ".join(filter(None, [str(got), later])))
        case UnknownEntityError():
            return ColoAnswer(colo, "absent", str(got))
        case FalconError():
            return ColoAnswer(colo, "refused", str(got))
    if any(one.changed or one.dry_run for one in got):
        return ColoAnswer(colo, "done", "; ".join(["done", *(one.reload for one in got if one.reload)]))
    return ColoAnswer(colo, "unchanged", "nothing to do")


def _is_noted(old: Wanted | None, answer: ColoAnswer) -> bool:
    """Whether the journal learns from an answer about what it does not make up for: that the colo has it, or may."""
    return answer.outcome in ("done", "unchanged") or (old is None and answer.outcome == "unanswered")


def _each(sends: Sequence[Send], perform: Callable[[Send], Sequence[OperationResult]]) -> list[_Made]:
    """What each has come to; after a colo did not answer, it is not asked again."""
    made: list[_Made] = []
    for one in sends:
        if made and isinstance(made[-1], ColoAwayError | UnansweredError):
            made.append(made[-1])
            continue
        try:
            made.append(perform(one))
        except FalconError as error:
            made.append(error)
    return made


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
    text, declared = tree.text(document), KINDS[data["kind"]].model_validate(data)
    has_secrets = any(secrets_in(declared)) or without_credentials(text) != text
    key = data["kind"], data["name"]
    return GivenEntity(key, text, colo, tuple(one["name"] for one in clusters), has_secrets)


def _in_order(names: Sequence[str], parts: Sequence[Plan]) -> Iterator[str]:
    yield from (one for one in names if any(one in part for part in parts))


def _as_data(who: Principal) -> dict[str, object]:
    return {"name": who.name, "role": who.role.name, "groups": sorted(who.groups)}


def _refusal(answers: Sequence[ColoAnswer], results: Sequence[_Made]) -> FalconError:
    """As the colo said it, where it is the only one."""
    failures = [one for one in results if isinstance(one, FalconError)]
    refused = [one for one in failures if not isinstance(one, ColoAwayError)]
    if not refused:
        return ColoAwayError("; ".join(dict.fromkeys(one.message for one in answers if one.is_missing)))
    if len(answers) == 1:
        return refused[0]
    statuses = {getattr(one, "status", _CONFLICT) for one in refused}
    return RefusedByColosError(
        [one for one in answers if one.is_missing], statuses.pop() if len(statuses) == 1 else _CONFLICT
    )


def _merged(asked: Change, audit: Audit, answers: Sequence[ColoAnswer], got: Sequence[_Made]) -> OperationResult:
    """The results of colos as one: each entity once, with what was done where anything was."""
    results = [one for those in got if not isinstance(those, FalconError) for one in those]
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
