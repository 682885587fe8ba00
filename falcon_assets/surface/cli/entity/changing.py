"""``falcon entity submit|update|delete|submit-and-schedule|schedule|suspend|resume``."""

from __future__ import annotations

from collections.abc import Callable

import click

from falcon_assets.errors import listed_problems
from falcon_assets.features.entities.changing import delete, submit, submit_and_schedule, touch, update
from falcon_assets.features.entities.results import EntityChange, EntityState, OperationResult, Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.entity.words import KIND, commanded_or_declared, moment
from falcon_assets.surface.cli.listing import print_json


def _status_command(name: str, tell: Callable[[Installation, Request], OperationResult], text: str) -> click.Command:
    @click.command(name, help=f"{text}\n\nThe command applies to all that are named, or to none.")
    @click.argument("names", metavar="NAME...", nargs=-1, required=True)
    @click.option("--kind", type=click.Choice(["feed", "process"]), help="Where a feed and a process have that name.")
    @click.option("--reason", default="", help="Why, for the record.")
    @click.option("--dry-run", is_flag=True, help="Only say what would change.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def command(names: tuple[str, ...], kind: str | None, reason: str, dry_run: bool, as_json: bool) -> None:
        with open_installation() as installation:
            result = tell(installation, Request(names, kind, None, reason, dry_run))
        if as_json:
            print_json(result.as_data())
            return
        for before, after in result.statuses:
            say(before, after, dry_run=dry_run)

    return command


def say(before: EntityState, after: EntityState, *, dry_run: bool = False) -> None:
    """Says what became of the status of an entity, or would."""
    if before == after:
        since = f"since {moment(after.since)}, {commanded_or_declared(after.commanded)}"
        click.echo(f"{after.kind} {after.name} is {after.status} already ({since}): nothing to do")
    elif dry_run:
        click.echo(f"{after.kind} {after.name} would be {after.status}, it is {before.status}")
    else:
        click.echo(f"{after.kind} {after.name} is {after.status} now, it was {before.status}")


schedule_command = _status_command("schedule", schedule_entities, "Let what is SUBMITTED run by itself from now on.")
suspend_command = _status_command(
    "suspend", suspend_entities, "Start no more instances of what is RUNNING; those that run already go on."
)
resume_command = _status_command(
    "resume", resume_entities, "Let what is SUSPENDED run again, the instances of the meantime included."
)


def _command(
    name: str, change: Callable[[Installation, Request], OperationResult], metavar: str, text: str
) -> click.Command:
    @click.command(name, help=text)
    @click.argument("given", metavar=metavar, nargs=-1, required=True)
    @click.option("--kind", type=KIND, help="Of what kind those are that are named.")
    @click.option("--reason", default="", help="Why; it is recorded with the change.")
    @click.option("--dry-run", is_flag=True, help="Only say what would change, as a diff.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def command(given: tuple[str, ...], kind: str | None, reason: str, dry_run: bool, as_json: bool) -> None:
        with open_installation() as installation:
            result = change(installation, Request(given, kind, None, reason, dry_run))
        if as_json:
            print_json(result.as_data())
        else:
            say_result(result)

    return command


def say_result(result: OperationResult) -> None:
    """Says what a command did to entities, or would do."""
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
        say(before, after)
    if result.reload:
        click.echo(result.reload)


def _sentence(one: EntityChange, result: OperationResult) -> str:
    if one.action == "unchanged":
        there = f"is so already ({one.file})" if one.file else "is not there"
        return f"{one.kind} {one.name} {there}: nothing to do"
    done = f"would be {one.action}" if result.dry_run else f"is {one.action}"
    return f"{one.kind} {one.name} {done} ({one.file})"


submit_command = _command(
    "submit",
    submit,
    "FILE|FOLDER|NAME...",
    """Add the entities of files and folders to the definitions.

    The whole tree of definitions must be valid with them, or nothing is written. Each entity gets a file of its
    own. What is there already with the same definition stays as it is.
    """,
)
update_command = _command(
    "update",
    update,
    "FILE|FOLDER|NAME...",
    """Give entities that are there the definitions of files and folders.

    Comments, order of keys and layout of the old definition are kept; a new one that has comments of its own takes
    its place as it is. The whole tree must be valid, or nothing is written.
    """,
)
delete_command = _command(
    "delete",
    delete,
    "NAME|FILE|FOLDER...",
    """Remove entities, by name or as they are in files and folders.

    What others need is not removed. The status of the entities is forgotten; data and history stay.
    """,
)
submit_and_schedule_command = _command(
    "submit-and-schedule",
    submit_and_schedule,
    "FILE|FOLDER|NAME...",
    "Submit entities, and let the feeds and processes among them run by themselves.",
)
touch_command = _command(
    "touch",
    touch,
    "NAME...",
    """Record the definitions of entities as new versions, although nothing in them has changed.

    Instances from now on have the new version; those before keep theirs. Each time is another version.
    """,
)
