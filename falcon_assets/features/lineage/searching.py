"""Search of versions by conditions, and reruns of everything that was made from a version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args

from pydantic import Field

from falcon_assets.errors import ExpressionError, QueryError, UnknownEntityError, UnknownInstanceError, printable
from falcon_assets.features.lineage.asking import Impact
from falcon_assets.features.lineage.store import (
    COMPARISONS,
    FLAGS,
    NUMBERS,
    TEXTS,
    TIMES,
    Condition,
    Value,
    search_versions,
)
from falcon_assets.history.events.data_version import Version
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import may_read
from falcon_assets.model.feed import Feed, LifecycleStatus
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.acting import acting
from falcon_assets.operations.audit import AuditedRequest
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.operations.paging import known_field, require_part
from falcon_assets.planning.version_columns import VersionStatus


@dataclass(frozen=True)
class Recomputed(Result):
    """The requests in order of making, and why others (``left``) cannot run again."""

    results: tuple[CommandResult, ...]
    left: tuple[str, ...]
    keys = ("changed", "results", "left")

    @property
    def changed(self) -> int:
        return sum(one.changed for one in self.results)


def rerun_impact(installation: Installation, impact: Impact, request: AuditedRequest) -> Recomputed:
    """Requests reruns of all instances that made present data; each waits until its inputs are there.

    After a kill some are requested, and the same call requests the others. Raises DeniedError where the user may not
    command one of them; those before it are requested.
    """
    results, left = [], []
    for entity, cluster, nominal in impact.recompute:
        query = InstanceQuery(entity, start=nominal, cluster=cluster)
        asked = InstanceRequest(query, request.actor, request.reason, request.dry_run)
        try:
            results.append(rerun_instances(installation, asked, RerunOptions(force=True)))
        except (UnknownEntityError, UnknownInstanceError) as error:
            left.append(str(error))
    return Recomputed(tuple(results), tuple(left))


_WHERE = re.compile(rf"\s*([A-Za-z_]+)\s*({'|'.join(COMPARISONS)})\s*(.*?)\s*", re.DOTALL)
_DIGITS = 18
_OF_FEEDS = ("owner", "tag", "group")
_WORDS: Mapping[str, Sequence[str]] = {
    "status": (*(one.value for one in VersionStatus), "KEPT"),
    "lifecycle": get_args(LifecycleStatus),
    **dict.fromkeys(FLAGS, ("true", "false")),
}
FIELDS = dict.fromkeys((*TEXTS, *TIMES, *NUMBERS, *_WORDS, *_OF_FEEDS))


@dataclass(frozen=True)
class FoundVersions(Result):
    """A part of the versions, the latest in history first; ``next`` requests the next part, None: the end."""

    items: tuple[Version, ...]
    next: str | None


class SearchLineage(Operation):
    """Search versions by their recorded properties, the latest first.

    Conditions with = on one field match any of their values; all other conditions must match. owner, tag and group are
    those of the feed.
    """

    command = "lineage search"
    where: Annotated[tuple[str, ...], Given(metavar="FIELD=VALUE")] = Field(
        (),
        description="Condition; may be repeated. Operators: =, !=, >=, <=, > and <; in texts * matches any characters. "
        f"Fields: {', '.join(FIELDS)}.",
    )
    after: Annotated[str | None, Given(metavar="NEXT")] = Field(
        None, description='Continue a list: the value of "next" in the previous list\'s JSON.'
    )
    limit: Annotated[int, Given(shows_default=True)] = Field(
        100, ge=1, le=10_000, description="Maximum number of items."
    )

    def run(self, installation: Installation) -> FoundVersions:
        return search_lineage(installation, self.where, after=self.after, limit=self.limit)


def search_lineage(
    installation: Installation, where: Iterable[str] = (), *, after: str | None = None, limit: int = 100
) -> FoundVersions:
    """Returns versions that meet all conditions, of readable feeds; ``after`` is :attr:`FoundVersions.next`.

    ``where`` are ``FIELD=VALUE`` with one of :data:`FIELDS`, or with ``!=``, ``>=``, ``<=``, ``>``, ``<``. In texts
    ``*`` stands for any text. Of several with ``=`` and one field any may fit, of all others all must. ``owner``,
    ``tag`` and ``group`` are those of the feed.

    Raises:
        QueryError: a condition cannot be understood, or there is no such part.
    """
    require_part(0, limit, least=1)
    if after is not None and not (after.isdecimal() and len(after) <= _DIGITS):
        raise QueryError(f"{printable(after)!r} is not the `next` of a list: pass what --json gave as next")
    feeds = installation.all_entities.feeds
    conditions = _conditions(list(where), list(feeds.values()))
    who = acting(installation.settings)
    hidden = [name for name, feed in feeds.items() if not may_read(feed.acl, who)]
    lifecycles: dict[str, list[str]] = {}
    for name, feed in feeds.items():
        if feed.lifecycle_status != "initial":
            lifecycles.setdefault(feed.lifecycle_status, []).append(name)
    with installation.tables_caught_up().connect() as connection:
        before = int(after) if after is not None else None
        found = search_versions(connection, conditions, lifecycles, hidden, before, limit + 1)
    items = tuple(found[:limit])
    return FoundVersions(items, str(items[-1].number) if len(found) > limit else None)


def _conditions(where: Sequence[str], feeds: Sequence[Feed]) -> list[Condition]:
    alike: dict[str, list[Value]] = {}
    others = []
    for text in where:
        field, comparison, values = _condition(text, feeds)
        if comparison == "=":
            alike.setdefault(field, []).extend(values)
        else:
            others += [Condition(_column(field), comparison, (value,)) for value in values]
    return [*(Condition(_column(field), "=", tuple(values)) for field, values in alike.items()), *others]


def _column(field: str) -> str:
    return "feed" if field in _OF_FEEDS else field


def _condition(text: str, feeds: Sequence[Feed]) -> tuple[str, str, tuple[Value, ...]]:
    match = _WHERE.fullmatch(text)
    if match is None:
        raise QueryError(f"{printable(text)!r}: write FIELD=VALUE, or with {', '.join(COMPARISONS)}")
    field, comparison, value = known_field(match[1], FIELDS), match[2], printable(match[3])
    if comparison not in ("=", "!=") and field not in (*TIMES, *NUMBERS):
        raise QueryError(f"{printable(text)!r}: only numbers and times are greater or less: write = or !=")
    if field in _OF_FEEDS:
        return field, comparison, tuple(_named(feeds, field, value))
    return field, comparison, (_value(field, value),)


def _named(feeds: Sequence[Feed], field: str, value: str) -> Iterator[str]:
    for feed in feeds:
        tags = (text for name, tag in feed.tags.items() for text in (name, f"{name}={tag}"))
        known = {"owner": [feed.acl.owner] if feed.acl else [], "tag": list(tags), "group": list(feed.groups)}
        if value in known[field]:
            yield feed.name


def _value(field: str, text: str) -> Value:
    if field in _WORDS:
        wanted = next((one for one in _WORDS[field] if one.casefold() == text.casefold()), None)
        if wanted is None:
            raise QueryError(f"there is no {field} {text!r}; there is: {', '.join(_WORDS[field])}")
        return wanted == "true" if field in FLAGS else wanted
    if field in TIMES:
        try:
            return parse_instant(text)
        except ExpressionError as error:
            raise QueryError(str(error)) from error
    if field in NUMBERS:
        if not (text.isdecimal() and text.isascii()) or len(text) > 18:
            raise QueryError(f"{text!r} is not a whole number, as {field} is")
        return int(text)
    return text
