"""Runs a program as an instance is run, and holds what the capture says against the truth."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.capture.capturing import capturing
from falcon_assets.compute.spark.sessions import isolated
from falcon_assets.planning.data_usage import Usage, usage
from falcon_assets.planning.version_columns import Source
from tests.spark.capture.corpus.world import Program, World, world_in


@dataclass(frozen=True)
class Grade:
    """How a program was judged.

    Attributes:
        wrong: What is said that is not so, or not said; none of it is marked as unsure.
        unsure: What is marked as unsure.
        is_false_pass: Whether strict lineage lets through what is not declared.
        is_false_alarm: Whether it stops what is.
    """

    wrong: tuple[str, ...]
    unsure: tuple[str, ...]
    is_false_pass: bool
    is_false_alarm: bool

    @property
    def word(self) -> str:
        """In a word."""
        return "wrong" if self.wrong else "unsure" if self.unsure else "right"


def used_by(program: Program, world: World, root: SparkSession) -> Usage:
    """What the capture says of it."""
    with isolated(root) as child:
        here = world_in(child, world.folder)
        with capturing(child) as told:
            frame = program.run(here)
            if frame is not None:
                seen = frame.observe(Observation(), sf.count(sf.lit(1)).alias("records"))
                seen.write.mode("overwrite").parquet(here.url("out"))
            captured = told()
    return usage(captured, here.declared(), here.find)


def grade(program: Program, world: World, used: Usage) -> Grade:
    """Holds what was said against the truth."""
    wrong, unsure = list[str](), list[str]()
    doubts = [one for one in (used.problem, *used.unknown) if one]
    unsure += doubts

    def hold(what: str, truth: Iterable[str], said: Iterable[str]) -> None:
        expected, got = sorted(set(truth)), sorted(set(said))
        if expected != got and not doubts:
            wrong.append(f"{what}: {' '.join(got) or 'nothing'} instead of {' '.join(expected) or 'nothing'}")

    read = [one.feed for one in used.undeclared] + [_place(one, world) for one in used.places]
    hold("reads", program.reads.split(), read)
    hold("writes", program.writes.split(), [_place(one, world) for one in used.written])
    hold("not read", program.unread.split(), used.not_read)
    columns = used.columns.get("out")
    if columns is None:
        wrong += [] if doubts else ["no columns"]
    else:
        for name, truth in program.columns.items():
            one = next((each for each in columns.each if each.name == name), None)
            said = _named(one.inputs, world) if one else ["no such column"]
            if one is not None and one.is_opaque:
                unsure.append(name)
            elif sorted(truth.split()) != said:
                wrong.append(f"{name}: {' '.join(said) or 'nothing'} instead of {truth or 'nothing'}")
        rows = _named(columns.rows_from or (), world)
        if columns.are_rows_opaque:
            unsure.append("rows")
        elif program.rows is not None and sorted(program.rows.split()) != rows:
            wrong.append(f"rows: {' '.join(rows) or 'nothing'} instead of {program.rows or 'nothing'}")
    must_fail, fails = bool(program.reads or program.writes), bool(doubts or used.breaches)
    return Grade(tuple(wrong), tuple(unsure), must_fail and not fails, fails and not must_fail)


def _named(sources: Iterable[Source], world: World) -> list[str]:
    return sorted({f"{_place(place, world)}.{column.lower()}" for place, column in sources})


def _place(place: str, world: World) -> str:
    if place.startswith("jdbc:"):
        return "jdbc"
    named = re.sub(rf"^{re.escape(str(world.folder))}/(data/)?", "", place)
    return "text" if named.startswith("text/") else named.removeprefix("python:")
