"""The operation that finds causes of a missing instance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import definition_of, versions_for
from falcon_assets.features.triage.answers import TriageAnswers
from falcon_assets.features.triage.known import Data, Work
from falcon_assets.features.triage.tree import Cause, by_reason, causes_of
from falcon_assets.features.triage.walk import Search
from falcon_assets.features.triage.words import as_markdown
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.store.foreign_sources import known_here
from falcon_assets.instances.views.details import find_subject
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings


@dataclass(frozen=True)
class Triage:
    """The result of a triage; ``definition`` returns the version of the definition of a cause, None: not known."""

    cause: Cause
    definition: Callable[[Cause], int | None]

    @property
    def failed(self) -> bool:
        """Whether a store could not be queried."""
        return bool(self.cause.unasked)

    def as_data(self) -> dict[str, Any]:
        groups = [one.as_data() for one in by_reason(self.cause)]
        return {**_data(self.cause, self.definition), "by_reason": groups, "unasked": self.cause.unasked or None}


class TriageInstance(Operation):
    """Find out why an instance of the process or feed NAME is missing.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. Follows missing inputs back to their root causes, and shows how to fix each;
    a cause with several effects is shown once. The exit code is 0 whether the instance is there or not, and 1 where a
    store could not be read.
    """

    command = "instance triage"
    page = "instance/triage"
    name: Annotated[str, Given("NAME")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description="Cluster: needed if the entity is on several.")
    kind: Annotated[Literal["feed", "process"] | None, Given(flags=("--type",))] = Field(
        None, description="Kind of NAME: needed if a feed and a process share it."
    )

    def run(self, installation: Installation) -> Triage:
        return triage(installation, self.name, self.instance, self.cluster, self.kind)


def triage(
    installation: Installation, name: str, instance: datetime, cluster: str | None = None, kind: str | None = None
) -> Triage:
    """Searches for causes across all colos that this database serves; changes nothing.

    Raises:
        UnknownEntityError, UnknownInstanceError: as :func:`find_subject`.
        DeniedError: the user may not read it.
    """
    store, now = installation.all_entities, installation.settings.now()
    subject = find_subject(store, name, instance, cluster, kind)
    require_readable(installation, "triage", [subject.entity])
    with installation.tables_caught_up().begin() as connection:
        store = known_here(connection, store, installation.entities)
        search = Search(store, TriageAnswers(connection, store, installation.settings, now), now)
        of_feed = subject.workload is None
        work, data = Work(subject.name, subject.cluster, instance), Data(subject.name, subject.cluster, instance)
        search.run([] if of_feed else [work], [data] if of_feed else [])
        found = {one[:2]: workload for one in search.works if (workload := store.workload(*one[:2]))}
        versions = versions_for(connection, found.values())

    def definition(cause: Cause) -> int | None:
        workload = found.get((cause.name, cause.cluster or "")) if cause.kind != "feed" else None
        if workload is None or cause.first is None:
            return None
        return definition_of(workload, cause.first, cause.record, versions)

    return Triage(causes_of(search, data if of_feed else work), definition)


def _data(one: Cause, definition: Callable[[Cause], int | None]) -> dict[str, Any]:
    record = one.record
    return {
        "entity": one.name,
        "kind": one.kind,
        "cluster": one.cluster,
        "instance": one.first and format_instant(one.first),
        "state": one.state,
        "reason": one.reason and one.reason.as_data(),
        "attempt": record.attempt if record else 0,
        "run": record and record.run,
        "started": record and record.started and record.started.isoformat(),
        "ended": record and record.ended and record.ended.isoformat(),
        "definition": definition(one),
        "fix": one.fix,
        "equal": {"count": one.count, "last": format_instant(one.last)} if one.count > 1 and one.last else None,
        "between": one.between,
        "more": one.more,
        "told_above": one.is_told,
        "causes": [_data(cause, definition) for cause in one.causes],
    }


TOLD = 10
"""Instances of a workload whose causes are searched when several time out together: mostly they are equal."""


def timeout_causes(
    ledger: Ledger, store: EntityStore, settings: Settings, workload: Workload, nominals: Iterable[datetime]
) -> Mapping[datetime, str]:
    """Instance -> its causes as Markdown, for the first :data:`TOLD`; no store is queried."""
    works = [Work(workload.name, workload.cluster, nominal) for nominal in islice(nominals, TOLD)]
    if not works:
        return {}
    now = settings.now()
    with ledger.engine.begin() as connection:
        search = Search(store, TriageAnswers(connection, store, settings, now, stores=0), now)
        search.run(works, [])
    return {work.nominal: as_markdown(causes_of(search, work)) for work in works}
