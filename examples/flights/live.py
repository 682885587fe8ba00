"""The outside system of the example: it lands the hours as the clock reaches them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import click

from examples.flights.landing import Landed, land, landing_places, next_landing
from examples.flights.late_flights import CORRECTED, LATE, second_after
from falcon_assets.base.home import require_space
from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import SettingsError
from falcon_assets.model.instant import format_instant
from falcon_assets.settings import Settings, load_settings
from falcon_assets.shared_clock import FILE

_LONGEST_NAP = timedelta(minutes=1)
"""The machine's clock may be set, or the machine suspended, while this sleeps: it looks again after that."""


@click.command()
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 365), help="How far back it begins.")
def live(days: int) -> None:
    """Land flights and weather hour by hour, as FALCON_CLOCK reaches them, until Ctrl-C.

    It only writes files: Dagster is told nothing. What is there already is left as it is.
    """
    settings = load_settings()
    if not settings.clock.runs:
        raise SettingsError(
            "this needs a clock that runs through 2013, when the flights were: "
            "set FALCON_CLOCK=2013-01-02T00:00Z@120x, for this command and for Dagster"
        )
    require_space(settings.home)
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    landing_places(store)
    try:
        land_until_the_end(settings, store, timedelta(days=days), time.sleep)
    except KeyboardInterrupt:
        click.echo("Stopped.")


def land_until_the_end(
    settings: Settings,
    store: EntityStore,
    back: timedelta,
    sleep: Callable[[float], object],
    changed: Callable[[Landed], object] = lambda one: None,
) -> None:
    """Lands what is due, then waits for the next hour of the clock, and so on until everything has landed.

    Args:
        settings: Whose clock this is; it runs.
        store: The entities.
        back: How much of the past it lands in the beginning, on that clock.
        sleep: Called with how many seconds to wait; may end everything by an error.
        changed: Told of each instance that was there, and is another one now.
    """
    now = settings.now()
    landed_until = first = now - back
    click.echo(f"The clock shows {format_instant(now)}; Ctrl-C stops.")
    while True:
        found = [one for one in land(store, settings, max(landed_until - CORRECTED, first), now) if one]
        counts = Counter(one.feed.name for one in found if not one.again)
        if counts:
            said = ", ".join(f"{name} {count}" for name, count in counts.items())
            click.echo(f"{format_instant(now)}: landed {said}")
        for one in found:
            if one.again:
                click.echo(f"{format_instant(now)}: {again_in_words(one)}")
                changed(one)
        following = next_landing(store, now)
        if following is None:
            click.echo(f"At {format_instant(now)} nothing is left to land.")
            click.echo(f"To start the clock anew, stop everything and remove {settings.home / FILE}")
            return
        landed_until, now = now, _wait_for(following, settings, sleep)


def _wait_for(moment: datetime, settings: Settings, sleep: Callable[[float], object]) -> datetime:
    """Sleeps until the clock shows ``moment`` or later; returns what it shows then."""
    while (now := settings.now()) < moment:
        sleep(min((moment - now) / settings.clock.speed, _LONGEST_NAP).total_seconds())
    return now


def again_in_words(one: Landed) -> str:
    """What came late, and what that means for who has read it before."""
    late = second_after(one.instance) == LATE
    what = "flights came late" if late else "flights were corrected, after the cut-off"
    return f"{what}: {one.feed.name} {format_instant(one.instance)}"
