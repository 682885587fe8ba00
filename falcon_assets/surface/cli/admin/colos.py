"""``falcon admin colos``: the colos of a front."""

from __future__ import annotations

import click

from falcon_assets.errors import count_of
from falcon_assets.features.colos.operations import ColoState, ColoStates, ShowColos
from falcon_assets.surface.cli.declared import command

_CLOCK_SECONDS = 2
"""Less than that is not known."""


def _show(found: ColoStates) -> None:
    for one in found.colos:
        click.echo(f"{one.name} ({one.url}): {_sentence(one)}")
        for problem in one.problems:
            click.echo(f"  {problem}")


def _sentence(one: ColoState) -> str:
    missing = f"{count_of(one.pending, 'entity', 'entities')} not there yet" if one.pending else "misses nothing"
    if one.problem:
        return f"{one.problem}; {missing}"
    said = [f"answers in {one.seconds or 0:.2f} s", f"version {one.version}", f"revision {one.revision}", missing]
    ahead = one.clock_difference
    if ahead is not None and abs(ahead) >= _CLOCK_SECONDS:
        said.append(f"its clock is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}")
    return "; ".join(said)


colos = command(ShowColos, _show)
