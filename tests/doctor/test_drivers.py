"""What the doctor says of the memory and the Pythons of Spark's drivers."""

from __future__ import annotations

import sys

import pytest

from falcon_assets.doctor.drivers import judge_interpreters, judge_memory, size_of

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512 << 20),
        ("512m", 512 << 20),
        ("2g", 2 * GIB),
        ("2GB", 2 * GIB),
        ("4GiB", 4 * GIB),
        ("1048576k", GIB),
        ("1t", GIB << 10),
        ("2 gigs", None),
        ("", None),
        ("1.5g", None),
    ],
)
def test_a_size_as_spark_writes_it(text: str, size: int | None) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(
    ("asked", "status", "text"),
    [
        ("9g", "problem", "p is 9g, and this machine has 8.0 GiB: the driver is killed, or never starts"),
        ("7g", "warning", "p is 7g, and this machine has 8.0 GiB for all that runs on it"),
        ("1.5g", "problem", "p is '1.5g', which is not a size"),
        ("2g", "ok", "this machine has 8.0 GiB of memory, and no driver asks for too much of it"),
    ],
)
def test_memory(asked: str, status: str, text: str) -> None:
    (found,) = judge_memory({"p": asked}, 8 * GIB)
    assert (found.status.value, found.text) == (status, text)


def test_interpreters() -> None:
    told = {"PYSPARK_PYTHON": sys.executable, "cluster 'c': spark.pyspark.python": "python-of-nobody"}
    (found,) = judge_interpreters(told, "/usr/bin")
    assert (found.status.value, found.text) == (
        "problem",
        "cluster 'c': spark.pyspark.python is python-of-nobody, which is not a program here: every function in Python "
        "fails",
    )
    (well,) = judge_interpreters({"PYSPARK_PYTHON": sys.executable}, "")
    assert (well.status.value, well.text) == ("ok", "PYSPARK_PYTHON can be started")
