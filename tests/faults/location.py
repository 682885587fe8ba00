"""The code location of the fault tests: the product's own, but for its clock, which is put forward by hand.

A tick that began before the clock is put forward must not see what lands after it: so the sensors evaluate while the
clock stands still. Those that launch do so every two seconds, because the clock does not run while they wait. The
others do so every five: the director does it for them too, except where it strikes while they find new data.
"""

from __future__ import annotations

from dataclasses import replace

import dagster as dg

from falcon_assets.catalog.store import load_entities
from falcon_assets.settings import load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.faults.step_clock import COLLECTORS, DECIDERS, StepClock


def _while_the_clock_stands_still(sensor: dg.SensorDefinition, clock: StepClock) -> dg.SensorDefinition:
    launches = sensor.name.endswith("__coordinator")

    @dg.sensor(
        name=sensor.name,
        description=sensor.description,
        jobs=sensor.jobs if sensor.has_jobs else None,
        minimum_interval_seconds=2 if launches else 5,
        default_status=sensor.default_status,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        with clock.still(COLLECTORS if sensor.name.endswith("__collector") else DECIDERS) as still:
            return sensor(context) if still else dg.SkipReason("the clock is put forward just now")

    return evaluate


def _definitions() -> dg.Definitions:
    settings = load_settings()
    clock = StepClock(settings.home)
    built = definitions_of(load_entities(settings.entity_defs), replace(settings, clock=clock))
    return dg.Definitions(
        assets=built.assets,
        jobs=built.jobs,
        schedules=built.schedules,
        sensors=[_while_the_clock_stands_still(sensor, clock) for sensor in built.sensors or ()],
        resources=built.resources,
        metadata=built.metadata,
    )


defs = _definitions()
