"""Reruns of instances, with notes on the versions of definitions that they run with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from falcon_assets.base.texts import hidden
from falcon_assets.entities.definition_versions import EntityVersions, VersionSince, unrecorded_versions
from falcon_assets.errors import DefinitionStoreError, InvalidDefinitionsError, QueryError, count_of
from falcon_assets.instances.operations.downstream import downstream_of
from falcon_assets.instances.operations.rerun_notes import rerun_notes
from falcon_assets.instances.operations.selection import (
    CommandResult,
    InstanceChange,
    InstanceRequest,
    Outcome,
    Selected,
    operation_name,
    require_instances,
    select_instances,
)
from falcon_assets.instances.rules.applicable_states import FAILED_STATES, InstanceCommand, runs_again
from falcon_assets.instances.store import reruns
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.entity import Key as Entity
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import RERUN, InstanceState, RerunRequest
from falcon_assets.planning.process_instance import AskedProperties, require_usable, said_properties
from falcon_assets.planning.reasons import OffTimeline


def definition_notes(
    connection: Connection, root: Path, again: Sequence[Selected], latest: Collection[Key], now: datetime
) -> list[str]:
    """One sentence per process; unrecorded changes in ``root`` count as the latest version."""
    new: Mapping[Entity, int] = {}
    with suppress(InvalidDefinitionsError, DefinitionStoreError):  # validation says it
        new = unrecorded_versions(connection, root)
    by_process = groupby(again, key=lambda one: one.workload.entity.name)
    return [note for _, own in by_process for note in _notes(list(own), new, latest, now)]


def _notes(own: Sequence[Selected], new: Mapping[Entity, int], latest: Collection[Key], now: datetime) -> Iterator[str]:
    entity = own[0].workload.entity
    key = (entity.kind, entity.name)
    known = own[0].versions.get(key)
    if entity.kind != "process" or known is None:  # copies have no version of their own
        return
    if key in new:
        known = replace(known, versions=(*known.versions, VersionSince(new[key], now)))
    numbers = Counter(known.present if one.key in latest else known.of(one.nominal) for one in own)
    for number, many in sorted(numbers.items(), key=lambda item: item[0] or 0):
        yield _note(entity.name, number, many, known, is_new=key in new)


def _note(process: str, number: int | None, many: int, known: EntityVersions, *, is_new: bool) -> str:
    changed = ", which was changed since and is recorded when something runs" if is_new else ""
    with_it = f"with version {number} of the definition"
    what = count_of(many, f"instance of {process} runs", f"instances of {process} run")
    if number == known.present:
        return f"{what} {with_it}, the latest{changed}"
    return f"{what} {with_it}, as before, not with the latest, {known.present}{changed}: --use-latest takes that one"


class RerunOptions(BaseModel):
    """Options of a rerun. Reruns ``downstream`` wait for their inputs, and have no ``properties``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    force: bool = Field(False, description="Include instances that succeeded.")
    late: bool = Field(False, description="Use the workflow for late data (`late_process`).")
    from_failed: bool = Field(
        False,
        description="Only instances that failed, timed out or were killed. A replication continues after the files "
        "already copied; a process starts over.",
    )
    use_latest: bool = Field(False, description="Use the present definition, not the version that each instance had.")
    downstream: bool = Field(
        False,
        description="Include all that reads their outputs, directly or indirectly, through processes and "
        "replications. Shows the plan and asks for confirmation.",
    )
    properties: dict[str, str] = Field(
        {},
        description="Override properties for this rerun and its retries: KEY=VALUE, or a file of such lines; may be "
        "repeated. For secrets, name an environment variable of the run: 'KEY={env: NAME}'.",
    )

    @property
    def asked(self) -> AskedProperties:
        return tuple(sorted(self.properties.items()))


class RerunInstances(RerunOptions, InstanceChange):
    """Rerun finished instances of NAME: failed, timed out, killed or skipped.

    If NAME is a feed, reruns its replications, compactions, imports and exports. --start alone selects that one
    instance; without --start and --end, --status is required. At most `parallel` instances run at once. An instance
    that is requested twice runs once.
    """

    command = "instance rerun"
    role = Role.LAUNCHER

    def run(self, installation: Installation) -> CommandResult:
        return rerun_instances(installation, self.request, self)


def rerun_instances(
    installation: Installation,
    request: InstanceRequest,
    options: RerunOptions | None = None,
    command: InstanceCommand = InstanceCommand.RERUN,
) -> CommandResult:
    """Requests reruns of finished instances: failed for good or for now, timed out, killed or skipped.

    One transaction requests all or none, also when the process is killed. Requests that exist stay.

    Raises:
        DeniedError: an entity belongs to others.
        QueryError: ``late`` without a declaration for late data; unusable properties; more than 100,000 instances
            downstream; or as :func:`.select_instances`.
        UnknownInstanceError, UnknownEntityError: as there.
    """
    options = options or RerunOptions()
    ledger, now = installation.ledger, installation.settings.now()
    query = _only_failed(request.query) if options.from_failed else request.query
    ledger.catch_up()
    said = replace(request, reason=_why(options, request.reason))
    with (
        audited(installation, operation_name(command), said) as audit,
        ledger.engine.begin() as connection,
    ):
        actor = audit.principal.name
        chosen, off = _on_timelines(select_instances(installation, connection, query, now), query)
        _require_late(options, chosen)
        _require_told(installation, options, chosen)
        asked = {one.key: _request(one, options, actor, said.reason, now) for one in chosen}
        again = [one for one in chosen if runs_again(one.record, one.request, asked[one.key], force=options.force)]
        if options.downstream:
            following = downstream_of(connection, installation.entities, again, now)
            way = RerunOptions(use_latest=options.use_latest)
            asked |= {one.key: _request(one, way, actor, hidden(request.reason), now) for one in following}
            again += following
            chosen = list({one.key: one for one in (*chosen, *following)}.values())
        require_instances(audit, command, chosen, again)
        if not request.dry_run:
            reruns.request(connection, {one.key: asked[one.key] for one in again})
        latest = {one.key for one in again if asked[one.key].use_latest}
        notes = definition_notes(connection, installation.settings.entity_defs, again, latest, now)
        notes += rerun_notes(connection, again, now)
        if off:
            number = count_of(len(off), "instance is", "instances are")
            first = OffTimeline.of(off[0].workload.timeline, off[0].nominal)
            notes.append(f"{number} left alone: {off[0].workload.name} {format_instant(off[0].nominal)} {first}")
        audit.result(bool(again), connection)
    changed = {one.key for one in again}
    after = {} if request.dry_run else {key: asked[key] for key in changed}
    items = tuple(Outcome(one.info(after.get(one.key, one.request)), one.key in changed) for one in chosen)
    left = sum(
        one.record.state is InstanceState.SUCCEEDED and one.key not in changed and not one.request for one in chosen
    )
    if left and not options.force:
        succeeded = count_of(left, "instance that succeeded is", "instances that succeeded are")
        notes.append(f"{succeeded} left alone: --force runs them again")
    return CommandResult(command.value, actor, request.reason, now, request.dry_run, items, tuple(notes))


def _on_timelines(found: Sequence[Selected], query: InstanceQuery) -> tuple[list[Selected], list[Selected]]:
    """Splits off those that the present definitions lack; raises UnknownInstanceError where it is the only one."""
    off = [one for one in found if not one.workload.timeline.contains(one.nominal)]
    if query.alone and off:
        one = off[0]
        one.workload.timeline.require(one.nominal, f"{one.workload.name!r} on cluster {one.workload.cluster!r}")
    return [one for one in found if one not in off] if off else list(found), off


def _only_failed(query: InstanceQuery) -> InstanceQuery:
    states = query.states
    wanted = [one for one in FAILED_STATES if states is None or one in states]
    if not wanted:
        raise QueryError(f"--from-failed asks for {', '.join(one.value for one in FAILED_STATES)} only")
    others = tuple(one for one in query.filters if one[0] != "state")
    return replace(query, filters=(*others, *(("state", one.value) for one in wanted)))


def _require_late(options: RerunOptions, chosen: Sequence[Selected]) -> None:
    without = sorted({one.workload.name for one in chosen if one.workload.late is None}) if options.late else []
    if without:
        raise QueryError(f"{without[0]} declares nothing for late data: it cannot run again with --late")


def _require_told(installation: Installation, options: RerunOptions, chosen: Sequence[Selected]) -> None:
    for workload in {one.workload.name: one.workload for one in chosen if options.properties}.values():
        if not isinstance(workload.entity, Process):
            raise QueryError(f"{workload.name} is a {workload.kind}: it takes no properties")
        require_usable(workload.entity, installation.all_entities.clusters[workload.cluster], options.asked)


def _request(one: Selected, options: RerunOptions, actor: str, reason: str, now: datetime) -> RerunRequest:
    """``reason``: without secrets."""
    way = (options.late, options.use_latest, actor, reason, options.asked)
    again = RerunRequest(RERUN, one.record.attempt, one.record.failures, now, (), *way)
    # What late data asked for is run for that, too.
    return (
        replace(again, changes=one.request.changes, late_workflow=True)
        if one.request and one.request.is_late
        else again
    )


def _why(options: RerunOptions, reason: str) -> str:
    """Recorded without secrets, with the properties, which determine the result too."""
    reason = hidden(reason)
    properties = f"with {said_properties(options.asked)}" if options.properties else ""
    return f"{reason} ({properties})" if reason and properties else reason or properties
