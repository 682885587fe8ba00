"""``falcon lineage status``: what is validated, and what must never be lost."""

from __future__ import annotations

import click

from falcon_assets.errors import count_of
from falcon_assets.features.lineage.lifecycle_operations import LifecycleResult, SetLifecycle
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.lineage.words import named
from falcon_assets.surface.cli.lineage.words import status as status_of

_LISTED = 50
"""So many versions are printed."""


def _show(done: LifecycleResult) -> None:
    click.echo(f"{named(done.version)} {_said(done)}")
    if done.ancestors:
        click.echo(f"{count_of(len(done.ancestors), 'version')} that it was made from:")
    for one in done.ancestors[:_LISTED]:
        click.echo(f"  {named(one)}  {status_of(one)}{'' if one.exists else ': there is nothing left to protect'}")
    if len(done.ancestors) > _LISTED:
        click.echo(f"  ... and {len(done.ancestors) - _LISTED:,} more; --json lists all")


def _said(done: LifecycleResult) -> str:
    if not done.changed:
        return f"is {done.before} already"
    return f"{'would be' if done.dry_run else 'is'} {done.lifecycle.status}; it was {done.before}"


status = command(SetLifecycle, _show)
