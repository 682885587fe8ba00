"""``falcon instance rerun|kill|suspend|resume``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import click

from falcon_assets.errors import count_of
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest, Outcome
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.surface.cli.instance.reading import query_of, which
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import PROPERTIES

_SHOWN = 20
"""How many instances are listed."""
_DONE = {"rerun": "asked to run again", "kill": "killed", "suspend": "suspended", "resume": "resumed"}
_STATE = click.Choice([state.value for state in InstanceState], case_sensitive=False)
_OPTIONS = (
    click.argument("name"),
    which,
    click.option(
        "--status", "states", type=_STATE, multiple=True, help="Only those in that state; may be given several times."
    ),
    click.option("--reason", default="", help="Why; it is recorded."),
    click.option("--dry-run", is_flag=True, help="Only say what would change."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _request(states: tuple[str, ...], reason: str, *, dry_run: bool, **asked: Any) -> InstanceRequest:
    if not (states or asked["start"] or asked["end"]):
        raise click.UsageError("Say which instances: give --start, --start and --end, or --status.")
    query = query_of(**asked, filters=tuple(("state", state) for state in states))
    return InstanceRequest(query, None, reason, dry_run)


def _command(name: str, tell: Callable[[Installation, InstanceRequest], CommandResult], text: str) -> click.Command:
    @click.command(name, help=text)
    @_options
    def command(as_json: bool, **asked: Any) -> None:
        request = _request(**asked)
        with open_installation() as installation:
            _say(tell(installation, request), as_json=as_json)

    return command


@click.command()
@_options
@click.option("--force", is_flag=True, help="Instances that succeeded, too.")
@click.option("--late", is_flag=True, help="With the workflow that late data has.")
@click.option(
    "--from-failed",
    is_flag=True,
    help="Only what failed, timed out or was killed. A replication goes on with what it has copied; a process computes "
    "such an instance from its start, and those that succeeded not at all.",
)
@click.option("--use-latest", is_flag=True, help="With the present definition, not with the version that it had.")
@click.option(
    "--downstream",
    is_flag=True,
    help="What reads their outputs, too, over processes and replications, and what reads theirs. Shows the plan first.",
)
@click.option(
    "--properties",
    type=PROPERTIES,
    multiple=True,
    callback=lambda _ctx, _param, given: {name: value for one in given for name, value in one.items()},
    help="KEY=VALUE, or a file of such lines: properties over those that are declared, for this time only, retries "
    "included; may be given several times. A secret is named: 'KEY={env: NAME}' is a variable where it runs.",
)
@click.option("--yes", is_flag=True, help="Do not ask whether the plan of --downstream is meant.")
def rerun(as_json: bool, yes: bool, **asked: Any) -> None:
    """Run instances of NAME again that are over: failed, timed out, killed or skipped.

    NAME is a process, or a feed: then its replications. --start alone is that one instance; without --start and --end,
    --status says which. They are launched as `parallel` allows. Asked for twice, they run once.
    """
    options = RerunOptions(**{field.name: asked.pop(field.name) for field in fields(RerunOptions)})
    request = _request(**asked)
    with open_installation() as installation:
        if options.downstream and not (yes or request.dry_run):
            plan = rerun_instances(installation, replace(request, dry_run=True), options)
            _say(plan, as_json=as_json, limit=None)
            if not plan.changed:
                return
            click.confirm("Run all of them again?", abort=True, err=True)
        _say(rerun_instances(installation, request, options), as_json=as_json)


kill = _command(
    "kill",
    kill_instances,
    """End instances of NAME that wait, run or are suspended; they do not run by themselves any more.

    A run that computes one of them stops it within seconds, with its siblings going on; what is being published already
    is published. What is over stays as it is. `falcon instance rerun` runs killed instances again.
    """,
)
suspend = _command(
    "suspend",
    suspend_instances,
    """Hold back instances of NAME that wait or run, until they are resumed.

    What runs is stopped as by `kill`, and computed anew after `falcon instance resume`. What is over stays as it is.
    """,
)
resume = _command("resume", resume_instances, "Let suspended instances of NAME run again, with their timeout from now.")


def _say(result: CommandResult, *, as_json: bool, limit: int | None = _SHOWN) -> None:
    if as_json:
        print_json(result.as_data())
        return
    changed = [one for one in result.items if one.changed]
    for one in changed[:limit]:
        click.echo(_sentence(one, result))
    if limit is not None and len(changed) > limit:
        click.echo(
            f"... and {len(changed) - _SHOWN:,} more, the last one {format_instant(changed[-1].instance.instance)}"
        )
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
