"""``falcon instance rerun|resend|kill|suspend|resume|wait``."""

from __future__ import annotations

import sys

import click

from falcon_assets.errors import count_of
from falcon_assets.features.transfers.operations import ResendInstance
from falcon_assets.instances.operations.rerunning import RerunInstances
from falcon_assets.instances.operations.selection import CommandResult, Outcome
from falcon_assets.instances.operations.stopping import KillInstances, ResumeInstances, SuspendInstances
from falcon_assets.instances.operations.waiting import WaitForInstance, WaitResult
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command, command_of, perform

_SHOWN = 20
"""How many instances are listed."""
_DONE = {
    "rerun": "asked to run again",
    "resend": "asked to be sent again",
    "kill": "killed",
    "suspend": "suspended",
    "resume": "resumed",
}


@command_of(RerunInstances)
@click.option("--yes", is_flag=True, help="Skip the confirmation of --downstream.")
def rerun(asked: RerunInstances, yes: bool, as_json: bool) -> None:
    with open_installation() as installation:
        if asked.downstream and not (yes or asked.dry_run):
            plan = asked.model_copy(update={"dry_run": True}).run(installation)
            perform(plan, lambda plan: show_command(plan, limit=len(plan.items)), as_json=as_json)
            if not plan.changed:
                return
            click.confirm("Run all of them again?", abort=True, err=True)
        perform(asked.run(installation), show_command, as_json=as_json)


def show_command(result: CommandResult, limit: int = _SHOWN) -> None:
    changed = [one for one in result.items if one.changed]
    for one in changed[:limit]:
        click.echo(_sentence(one, result))
    if len(changed) > limit:
        last = format_instant(changed[-1].instance.instance)
        click.echo(f"... and {len(changed) - limit:,} more, the last one {last}")
    if not changed:
        click.echo("nothing to do")
    left = len(result.items) - len(changed)
    done = f"would be {_DONE[result.operation]}" if result.dry_run else _DONE[result.operation]
    click.echo(f"{count_of(len(changed), 'instance')} {done}, {left:,} left as they are")
    for note in result.notes:
        click.echo(note)


def _sentence(one: Outcome, result: CommandResult) -> str:
    name = f"{one.instance.entity} on {one.instance.cluster} {format_instant(one.instance.instance)}"
    if result.dry_run:
        return f"{name} would be {_DONE[result.operation]}: it is {one.instance.state.value}"
    return f"{name} is {one.instance.state.value}"


resend = command(ResendInstance, show_command)
kill = command(KillInstances, show_command)
suspend = command(SuspendInstances, show_command)
resume = command(ResumeInstances, show_command)


@command_of(WaitForInstance, "Print JSON instead of a sentence.")
def wait(asked: WaitForInstance, as_json: bool) -> None:
    try:
        with open_installation() as installation:
            result = asked.run(installation)
    except KeyboardInterrupt:
        sys.exit(130)
    perform(result, _show_state, as_json=as_json)


def _show_state(result: WaitResult) -> None:
    click.echo(result.text, err=not result.reached)
