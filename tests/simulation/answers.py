"""What the oracle expects and what was found, in words that can be compared: by instance, those with nothing left out.

Of runs only those that succeeded count here: what was tried besides is another question.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.simulation.expected import Expected
from tests.simulation.oracle import Oracle
from tests.simulation.recorded import Recorded
from tests.simulation.world import World

Answers = dict[str, Any]


def said(world: World, key: tuple[str, str, datetime]) -> str:
    """An instance, with the seed that makes its world."""
    return f"seed {world.seed}: {key[0]} on {key[1]} at {key[2]:%Y-%m-%dT%H:%MZ}"


def expected_states(oracle: Oracle) -> Answers:
    return {said(oracle.world, key): one.state for key, one in oracle.instances.items() if one.state != "WAITING"}


def found_states(world: World, recorded: Recorded) -> Answers:
    return {said(world, key): state for key, state in recorded.states.items()}


def expected_reads(oracle: Oracle) -> Answers:
    """The versions that every run read."""
    found = {
        said(oracle.world, key): [run.read for run in one.runs if run.succeeded]
        for key, one in oracle.instances.items()
    }
    return {key: reads for key, reads in found.items() if reads}


def found_reads(world: World, recorded: Recorded) -> Answers:
    found = {said(world, key): [run.read for run in runs if run.succeeded] for key, runs in recorded.runs.items()}
    return {key: reads for key, reads in found.items() if reads}


def expected_causes(oracle: Oracle) -> Answers:
    """What had changed for every run, of the instances that ran again for late data."""
    found = {
        said(oracle.world, key): [
            {(c.input, c.feed, c.instance, c.consumed, c.present) for c in run.causes}
            for run in one.runs
            if run.succeeded
        ]
        for key, one in oracle.instances.items()
    }
    return {key: causes for key, causes in found.items() if any(causes)}


def found_causes(world: World, recorded: Recorded) -> Answers:
    found = {said(world, key): [set(run.late) for run in runs if run.succeeded] for key, runs in recorded.runs.items()}
    return {key: causes for key, causes in found.items() if any(causes)}


def expected_too_late(oracle: Oracle) -> Answers:
    """What came too late."""
    return {
        said(oracle.world, key): sorted((c.feed, c.instance, c.present) for c in one.too_late)
        for key, one in oracle.instances.items()
        if one.too_late
    }


def found_too_late(world: World, recorded: Recorded) -> Answers:
    return {said(world, key): sorted(found) for key, found in recorded.too_late.items()}


def expected_line(world: World, key: tuple[str, str, datetime], one: Expected) -> str | None:
    """What lies there in the end: the line that the last successful run wrote; None: nothing was ever written."""
    runs = [run for run in one.runs if run.succeeded]
    if not runs:
        return None
    reads = [
        f"{item.name}: " + " ".join(v for (name, _), v in sorted(runs[-1].read.items()) if name == item.name and v)
        for item in world.process(key[0]).inputs
    ]
    label = f"{key[0]}@{key[2]:%Y-%m-%dT%H:%MZ}#{one.runs.index(runs[-1]) + 1}"
    workflow = "late" if runs[-1].workflow else "normal"
    return " | ".join([label, workflow, *map(str.strip, reads)])
