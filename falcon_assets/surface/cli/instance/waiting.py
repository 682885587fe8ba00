"""``falcon instance wait``: for scripts, and for pipelines of continuous integration."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from falcon_assets.errors import ExpressionError
from falcon_assets.instances.operations.waiting import LASTING, LASTING_OF_FEEDS, wait_for_instance
from falcon_assets.model.frequency import Frequency
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import one_instance


def _duration(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Frequency | None:
    try:
        return None if text is None else Frequency.parse(text)
    except ExpressionError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("name")
@one_instance
@click.option(
    "--for",
    "wanted",
    type=click.Choice([*LASTING, *LASTING_OF_FEEDS], case_sensitive=False),
    help="The state; SUCCEEDED, or AVAILABLE for a feed, if it is not given.",
)
@click.option(
    "--timeout",
    metavar="DURATION",
    callback=_duration,
    help="For so long at most, in real time: 'minutes(30)'. Not given: for as long as it takes.",
)
@click.option("--cluster", help="Which cluster, where it is on several.")
@click.option("--type", "kind", type=click.Choice(["process", "feed"]), help="Which, where both have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a sentence.")
def wait(
    name: str,
    instance: datetime,
    wanted: str | None,
    timeout: Frequency | None,
    cluster: str | None,
    kind: str | None,
    as_json: bool,
) -> None:
    """Wait until the INSTANCE (YYYY-MM-DDTHH:MMZ) of the process or feed NAME has a state.

    The ledger is asked every two seconds. The exit code is 0 when it has that state; 1 when it came to another and
    stays there unless somebody does something, or when the time is over; 130 when the command was interrupted.
    """
    try:
        with open_installation() as installation:
            result = wait_for_instance(
                installation,
                name,
                instance,
                wanted=wanted,
                timeout=timeout.length if timeout else None,
                cluster=cluster,
                kind=kind,
            )
    except KeyboardInterrupt:
        sys.exit(130)
    if as_json:
        print_json(result.as_data())
    else:
        click.echo(result.text, err=not result.reached)
    if not result.reached:
        sys.exit(1)
