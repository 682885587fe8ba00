"""Small programs, and what the capture says of each: right, or marked as unsure; never wrong without a word."""

from __future__ import annotations

import shutil

import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.sessions import session_for
from falcon_assets.model.cluster import Cluster
from tests.listener import LISTENER_HOME
from tests.spark.capture.corpus import in_python, in_sql
from tests.spark.capture.corpus.grading import Grade, grade, used_by
from tests.spark.capture.corpus.world import Program, World, make_world

PROGRAMS = [*in_sql.PROGRAMS, *in_python.PROGRAMS]
UNSURE = {
    *("recursive cte", "variable as a column", "variable in a filter"),
    *("lines as an RDD", "whole files as an RDD", "an input as an RDD", "an undeclared feed as an RDD"),
    *("an RDD that is collected", "an RDD in a thread", "lines written as an RDD"),
    *("rows that were collected", "a value that was collected", "a filter by what was collected"),
    *("a list that was collected", "a limit that was collected", "through pandas", "a metric that is observed"),
    *("a function that remembers", "a session of its own", "a thread", "scratch of an earlier time"),
    *("whole rows", "groups of rows", "cut off", "a stream"),
}
"""What goes through the program, or through what Spark does not look into."""


@pytest.fixture(scope="module")
def root(local_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_for(local_cluster, str(tmp_path_factory.getbasetemp()), LISTENER_HOME)


@pytest.fixture(scope="module")
def world(root: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(root, tmp_path_factory.mktemp("corpus"))


def judged(program: Program, world: World, root: SparkSession) -> Grade:
    shutil.rmtree(world.folder / "staging", ignore_errors=True)
    return grade(program, world, used_by(program, world, root))


def test_there_are_enough_of_them() -> None:
    names = {one.name for one in PROGRAMS}
    assert len(names) == len(PROGRAMS) >= 75
    assert names >= UNSURE


QUICK = {"field of a made structure", "a session of its own in a thread", "an RDD that is collected", "scratch"}
"""Those of which each shows another part of the capture, for every day."""


@pytest.mark.parametrize(
    "program", [pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.soak) for one in PROGRAMS]
)
def test_nothing_is_wrong_without_a_word(program: Program, world: World, root: SparkSession) -> None:
    found = judged(program, world, root)
    assert (found.wrong, found.is_false_pass, found.is_false_alarm) == ((), False, False)
    assert found.word == ("unsure" if program.name in UNSURE else "right")
