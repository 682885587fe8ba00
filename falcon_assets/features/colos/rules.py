"""What is sent to which colo, what their answers mean, and what the journal knows afterwards; without I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from falcon_assets.errors import UnknownEntityError, UsageError
from falcon_assets.features.entities.results import ColoAnswer, ColoOutcome
from falcon_assets.model.entity import KINDS, Key

Word: TypeAlias = Literal["submit", "apply", "update", "submit-and-schedule", "delete", "schedule", "suspend", "resume"]
"""Of an operation on entities, as after ``falcon entity``."""
Verdict: TypeAlias = Literal["SUCCEEDED", "PARTIAL", "FAILED", "ABSENT"]
STATUSES: Mapping[str, str] = {
    "submit-and-schedule": "RUNNING",
    "schedule": "RUNNING",
    "resume": "RUNNING",
    "suspend": "SUSPENDED",
}
KIND_ORDER: Sequence[str] = [*KINDS]
"""What others need comes before them."""
_SCHEDULED = ("feed", "process")
"""The kinds of what is on clusters, and goes to their colos only; all else goes to all colos."""
_CHAINS = {
    ("SUBMITTED", "RUNNING"): ("schedule",),
    ("SUBMITTED", "SUSPENDED"): ("schedule", "suspend"),
    ("RUNNING", "SUSPENDED"): ("suspend",),
    ("SUSPENDED", "RUNNING"): ("resume",),
}
_WORST: Sequence[ColoOutcome] = ("unanswered", "away", "refused", "done", "unchanged", "absent")
DOUBT = timedelta(seconds=90)
"""A request without an answer is over by then: servers give up after a minute."""


@dataclass(frozen=True)
class GivenEntity:
    """An entity as a request defines it.

    Attributes:
        colo: Of a cluster.
        clusters: Of others.
        has_secrets: Whether a secret is written out in it: no journal keeps its text.
    """

    key: Key
    text: str = field(repr=False)
    colo: str = ""
    clusters: tuple[str, ...] = ()
    has_secrets: bool = False


@dataclass(frozen=True)
class Wanted:
    """What a colo is to have of an entity, and as far as that was not acknowledged, how to bring it about.

    Attributes:
        version: Of the entity, counted by this front.
        present: Whether it is to be there.
        place: The colo of a cluster; "" of others.
        definition: What is not there yet; None: nothing.
        status: The status that is not there yet; None: none.
        is_anew: Whether the colo has one yet that was deleted since, with its status.
        is_pending: Whether anything is not there yet.
        problem: Why not, or why the colo refused the last change.
        doubt: When a request got no answer, which may be performed yet; real time.
        principal: Who asked: name, role and groups.
    """

    colo: str
    kind: str
    name: str
    version: int
    present: bool
    place: str = ""
    definition: str | None = field(default=None, repr=False)
    status: str | None = None
    is_anew: bool = False
    is_pending: bool = False
    problem: str = ""
    doubt: datetime | None = None
    principal: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""

    @property
    def key(self) -> Key:
        return self.kind, self.name


@dataclass(frozen=True)
class Send:
    """A request to a colo: an operation on definitions, or on names of one kind (None: whichever has the name)."""

    word: Word
    given: tuple[GivenEntity, ...] = ()
    names: tuple[str, ...] = ()
    kind: str | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        return (*(one.key for one in self.given), *((self.kind, name) for name in self.names if self.kind))


Plan: TypeAlias = Mapping[str, Sequence[Send]]
"""Colo -> what is sent to it, in order."""


@dataclass(frozen=True)
class Journal:
    """What is known before a change.

    Attributes:
        colos: All that there are.
        rows: Of the entities that the change is about, and of all clusters.
        unread: Colos whose entities were never read: the journal does not know what they have.
    """

    colos: Sequence[str]
    rows: Sequence[Wanted]
    unread: Collection[str] = ()

    def there(self, key: Key) -> list[str]:
        """Colos that are to have an entity."""
        return [one.colo for one in self.rows if one.key == key and one.present]

    def keys_named(self, name: str, kind: str | None, kinds: Collection[str]) -> list[Key]:
        found = {one.key for one in self.rows if one.name == name and one.present and one.kind in kinds}
        return sorted(key for key in found if kind in (None, key[0]))


def colos_of(given: GivenEntity, clusters: Mapping[str, str], journal: Journal) -> list[str]:
    """The colos that an entity belongs to; ``clusters`` have their colos.

    Raises:
        UnknownEntityError: a cluster is not known.
        UsageError: a colo is not one of those that there are.
    """
    kind, name = given.key
    if kind not in _SCHEDULED:
        places = {given.colo} if kind == "cluster" else set()
    else:
        for one in given.clusters:
            if one not in clusters:
                wait = f", or wait for {', '.join(journal.unread)} to answer" if journal.unread else ""
                raise UnknownEntityError(
                    f"{kind} {name!r} is on cluster {one!r}, which no colo has: submit it before or with it{wait}"
                )
        places = {clusters[one] for one in given.clusters}
    for place in sorted(places - {*journal.colos}):
        raise UsageError(f"{kind} {name!r} belongs to colo {place!r}; there is: {', '.join(journal.colos)}")
    return [one for one in journal.colos if kind not in _SCHEDULED or one in places]


def plan_definitions(word: Word, given: Sequence[GivenEntity], journal: Journal) -> Plan:
    """Plans a change by definitions; colos that an entity does not belong to any more lose it.

    Raises as :func:`colos_of`, and UnknownEntityError: what is to be updated is nowhere.
    """
    clusters = {one.name: one.place for one in journal.rows if one.kind == "cluster" and one.present and one.place}
    clusters |= {one.key[1]: one.colo for one in given if one.key[0] == "cluster"}
    sends: dict[str, dict[tuple[Word, str | None], Send]] = {}

    def add(colo: str, its: Word, entity: GivenEntity, *, by_name: bool) -> None:
        own = sends.setdefault(colo, {})
        kind = entity.key[0] if by_name else None
        now = own.setdefault((its, kind), Send(its, kind=kind))
        if by_name:
            own[its, kind] = replace(now, names=(*now.names, entity.key[1]))
        else:
            own[its, kind] = replace(now, given=(*now.given, entity))

    for one in given:
        there, places = journal.there(one.key), colos_of(one, clusters, journal)
        its = word
        if word == "update" and there:
            its = "apply"  # it is new where it comes to
        elif word == "update" and not journal.unread:
            raise UnknownEntityError(f"there is no {one.key[0]} {one.key[1]!r} in any colo: use falcon entity submit")
        for colo in places:
            add(colo, its, one, by_name=False)
        if word != "submit":
            for colo in sorted({*there} - {*places}):
                add(colo, "delete", one, by_name=True)
    return {colo: tuple(sorted(sends[colo].values(), key=_deletes_last)) for colo in journal.colos if colo in sends}


def _deletes_last(send: Send) -> int:
    """Sorts requests to a colo: what others need is deleted after them."""
    return -KIND_ORDER.index(send.kind) if send.word == "delete" and send.kind else -len(KIND_ORDER)


def plan_named(word: Word, names: Sequence[str], kind: str | None, journal: Journal) -> Plan:
    """Plans a change of entities that are named: of those that are known where they are, of others everywhere.

    Raises UnknownEntityError where there are several of a name, or none is anywhere.
    """
    found: dict[str, dict[tuple[str | None, str], Send]] = {}
    kinds = _SCHEDULED if word in ("schedule", "suspend", "resume") else [*KINDS]
    for name in dict.fromkeys(names):
        keys = journal.keys_named(name, kind, kinds)
        if len(keys) > 1:
            those = " and ".join(f"a {one}" for one, _ in keys)
            raise UnknownEntityError(f"there is {those} {name!r}: say which one with --kind")
        if not keys and not journal.unread and word != "delete":
            raise UnknownEntityError(f"there is no {kind or 'entity'} {name!r} in any colo")
        its = keys[0][0] if keys else kind
        everywhere = word == "delete" and its not in _SCHEDULED
        colos = journal.there(keys[0]) if keys and not everywhere else journal.colos
        for colo in colos:
            own = found.setdefault(colo, {})
            place = (its, "" if keys else name)  # one that is not known is absent without the others
            now = own.setdefault(place, Send(word, kind=its))
            own[place] = replace(now, names=(*now.names, name))
    return {colo: tuple(found[colo].values()) for colo in journal.colos if colo in found}


def pending_rows(
    plan: Plan, journal: Journal, principal: Mapping[str, object], reason: str
) -> Mapping[tuple[str, Key], Wanted]:
    """What is wanted from now on of what a plan changes, for each colo and entity that has a kind.

    What is submitted and was there before is not made up for: it would replace a definition, which submitting does not.
    What has secrets is not either: it is not pending.
    """
    before = {(one.colo, one.key): one for one in journal.rows}
    versions: dict[Key, int] = {}
    for row in journal.rows:
        versions[row.key] = max(versions.get(row.key, 0), row.version)
    made = {}
    for colo, sends in plan.items():
        for send in sends:
            definitions = {one.key: one for one in send.given}
            for key in send.keys:
                old, new = before.get((colo, key)), definitions.get(key)
                if send.word == "submit" and old and old.present and not old.is_pending:
                    continue
                status = STATUSES.get(send.word) if key[0] in _SCHEDULED else None
                was_deleted = bool(old and old.is_pending and (old.is_anew or not old.present))
                row = Wanted(
                    colo,
                    *key,
                    version=versions.get(key, 0) + 1,
                    present=send.word != "delete",
                    place=new.colo if new else old.place if old else "",
                    definition=new.text if new else old.definition if old and send.word != "delete" else None,
                    status=status or (old.status if old and send.word != "delete" else None),
                    is_anew=was_deleted and send.word != "delete",
                    is_pending=True,
                    doubt=old.doubt if old else None,
                    principal=principal,
                    reason=reason,
                )
                made[colo, key] = _settled(row) if new and new.has_secrets else row
    return made


def why_not_kept(send: Send, colo: str, wanted: Mapping[tuple[str, Key], Wanted]) -> str:
    """Of which entities of a request nothing is made up for, why, and what to do; "" where all is."""
    secret = [one.key for one in send.given if one.has_secrets and (colo, one.key) in wanted]
    there = [one.key for one in send.given if (colo, one.key) not in wanted]
    said = []
    if secret:
        said.append(
            f"{_named(secret)} is not kept for it, as a secret is written out there: write {{env: NAME}}, "
            "{file: PATH} or {encrypted: ...}, or ask again when the colo answers"
        )
    if there:
        said.append(f"it is known to have {_named(there)}, which submitting does not replace: apply does")
    return "; ".join(said)


def _named(keys: Sequence[Key]) -> str:
    return ", ".join(f"{kind} {name!r}" for kind, name in keys)


def row_after(before: Wanted | None, asked: Wanted, answer: ColoAnswer, now: datetime) -> Wanted | None:
    """The row of the journal after an answer; None: there is nothing to know.

    What was refused is as it was. A change counts as made up for only when no request from before can be performed
    any more, so that an old one does not come after it.
    """
    match answer.outcome:
        case "done" | "unchanged":
            if asked.doubt and now - asked.doubt < DOUBT:
                return replace(asked, problem="it is asked once more, as a request got no answer")
            made = replace(_settled(asked), problem="")
            return made if asked.present else None
        case "absent":
            return None
        case "refused":
            return before and replace(before, problem=answer.message)
        case "away":
            return replace(asked, problem=answer.message)
        case "unanswered":
            return replace(asked, problem=answer.message, doubt=now)


def given_up(row: Wanted) -> Wanted:
    """The row when a colo refuses what was to be made up for: it stays as it is there, until it is asked for again."""
    return replace(_settled(row), present=True)


def _settled(row: Wanted) -> Wanted:
    return replace(row, definition=None, status=None, is_anew=False, is_pending=False, doubt=None)


def in_order(row: Wanted) -> tuple[bool, int, str]:
    """Sorts what is to be made up for: what others need comes before them, and goes after them."""
    number = KIND_ORDER.index(row.kind)
    return (False, number, row.name) if row.present else (True, -number, row.name)


def combined(colo: str, answers: Sequence[ColoAnswer]) -> ColoAnswer:
    """The answer of a colo to several requests of one change: the worst outcome, with all that was said about it."""
    worst = min((one.outcome for one in answers), key=_WORST.index)
    return ColoAnswer(colo, worst, "; ".join(dict.fromkeys(one.message for one in answers if one.outcome == worst)))


def verdict(answers: Iterable[ColoAnswer], *, is_kept: bool) -> Verdict:
    """FAILED: nothing was done anywhere, and nothing is made up for.

    ``is_kept``: whether what colos miss that are away is made up for, as far as they do not refuse it.
    """
    outcomes = {one.outcome for one in answers if one.outcome != "absent"}
    if not outcomes:
        return "ABSENT"
    if outcomes <= {"done", "unchanged"}:
        return "SUCCEEDED"
    if outcomes <= {"refused", "away"} and ("refused" in outcomes or not is_kept):
        return "FAILED"
    return "PARTIAL"


def chain(present: str, wanted: str) -> Sequence[Word]:
    """The commands that bring an entity from one status to another."""
    found: Sequence[Word] = _CHAINS.get((present, wanted), ())  # type: ignore[assignment]  # words of the table
    return found
