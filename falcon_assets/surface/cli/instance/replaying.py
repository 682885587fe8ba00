"""``falcon instance replay``."""

from __future__ import annotations

import json
import sys

import click

from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.features.replay.comparison import Comparison
from falcon_assets.features.replay.operations import ReplayInstance, ReplayResult
from falcon_assets.features.replay.run import ReplayedOutput
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command_of, perform
from falcon_assets.surface.cli.quiet import output_to
from falcon_assets.surface.cli.shutdown import ends_in_time
from falcon_assets.surface.foreground.run import abandon

_INTERRUPTED = "Interrupted: what is published was not touched."


@command_of(ReplayInstance)
def replay(asked: ReplayInstance, as_json: bool) -> None:
    with ends_in_time(_INTERRUPTED, abandon), open_installation() as installation:
        try:
            with output_to(installation.settings.home / "replay.log"):
                done = asked.run(installation)
        except KeyboardInterrupt:
            click.echo(_INTERRUPTED)
            sys.exit(130)
        finally:
            stop_sessions()
    perform(done, _say, as_json=as_json)


def _say(done: ReplayResult) -> None:
    what = f"{done.process} {format_instant(done.instance)} on {done.cluster}"
    if done.impossible:
        click.echo(f"{what}: impossible\n{done.impossible}")
        _say_differences(done)
        return
    click.echo(f"{what}: {done.outcome}")
    for one in done.outputs:
        _say_output(done, one)
    _say_differences(done)
    if done.folder:
        click.echo(f"what was computed now lies in {done.folder}")
    if done.published:
        click.echo("what was computed now is published")


def _say_differences(done: ReplayResult) -> None:
    """Prints how the environment differs from then, or from the declaration."""
    for one in done.old:
        click.echo(f"with {one}")
    for name, (was, now) in done.environment.items():
        if name == "packages":
            click.echo(f"other packages are installed than then: of all of them the hash was {was}, and is {now}")
        else:
            click.echo(f"{name} was {was}, and is {now}")


def _say_output(done: ReplayResult, one: ReplayedOutput) -> None:
    recorded = done.recorded.get(one.feed)
    said = f"  {one.feed} {format_instant(one.instance)}"
    if recorded is None:
        click.echo(f"{said}: the run did not record it; {one.records:,} records now")
        return
    said = f"{said} version {recorded.version}"
    if one.comparison is None:
        before = "an unknown number of" if recorded.records is None else f"{recorded.records:,}"
        click.echo(f"{said}: its data is gone: {before} records were recorded, {one.records:,} now")
    elif one.comparison.is_same:
        click.echo(f"{said}: the same columns, the same {one.records:,} records")
    else:
        click.echo(f"{said}: different")
        _say_comparison(one.comparison)


def _say_comparison(found: Comparison) -> None:
    for column in found.columns:
        before, after = (text or "not there" for text in (column.before, column.after))
        click.echo(f"    column {column.name}: {before}, now {after}")
    click.echo(f"    records: {found.records[0]:,}, now {found.records[1]:,}")
    for many, when, rows in zip(found.only, ("only recorded", "only now"), found.samples, strict=True):
        if many:
            click.echo(f"    {when}: {many:,} records, for example")
            for row in rows:
                click.echo(f"      {json.dumps(row, ensure_ascii=False)}")
