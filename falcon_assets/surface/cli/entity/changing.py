"""``falcon entity submit|update|apply|delete|submit-and-schedule|touch|schedule|suspend|resume``."""

from __future__ import annotations

import click

from falcon_assets.errors import listed_problems
from falcon_assets.features.entities import operations
from falcon_assets.features.entities.results import EntityChange, EntityState, OperationResult
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import commanded_or_declared, moment


def show_change(result: OperationResult) -> None:
    """Prints what a command did to entities, or would do."""
    if result.dry_run:
        click.echo(result.diff, nl=False)
    for line in listed_problems(result.warnings):
        click.echo(line)
    for one in result.entities:
        click.echo(_sentence(one, result))
    for touched in result.touches:
        what = f"retention of {touched.name}" if touched.kind == "retention" else f"{touched.kind} {touched.name}"
        click.echo(f"it touches {what} on {', '.join(touched.clusters)}")
    for before, after in result.statuses:
        click.echo(_status(before, after, dry_run=result.dry_run))
    if result.reload:
        click.echo(result.reload)
    for colo in result.colos:
        click.echo(f"{colo.colo}: {colo.message}")
    if result.partial:
        click.echo("PARTIAL: it is not done in all colos")


def _sentence(one: EntityChange, result: OperationResult) -> str:
    if one.action == "unchanged":
        there = f"is unchanged ({one.file})" if one.file else "is not there"
        return f"{one.kind} {one.name} {there}: nothing to do"
    done = f"would be {one.action}" if result.dry_run else f"is {one.action}"
    return f"{one.kind} {one.name} {done} ({one.file})"


def _status(before: EntityState, after: EntityState, *, dry_run: bool) -> str:
    entity = f"{after.kind} {after.name}"
    if before == after:
        since = f"since {moment(after.since)}, {commanded_or_declared(after.commanded)}"
        return f"{entity} is {after.status} already ({since}): nothing to do"
    if dry_run:
        return f"{entity} would be {after.status}, it is {before.status}"
    return f"{entity} is {after.status} now, it was {before.status}"


submit_command = command(operations.SubmitEntities, show_change)
update_command = command(operations.UpdateEntities, show_change)
apply_command = command(operations.ApplyEntities, show_change)
delete_command = command(operations.DeleteEntities, show_change)
submit_and_schedule_command = command(operations.SubmitAndScheduleEntities, show_change)
touch_command = command(operations.TouchEntities, show_change)
schedule_command = command(operations.ScheduleEntities, show_change)
suspend_command = command(operations.SuspendEntities, show_change)
resume_command = command(operations.ResumeEntities, show_change)
restore_command = command(operations.RestoreEntity, show_change)
