"""Checks of Spark's drivers on this machine: their memory, and the Python of their workers."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.endpoints.confs import is_connect
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.model.cluster import Cluster

_MEMORY = "spark.driver.memory"
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
"""Powers of two; without a unit Spark takes MiB."""
_MUCH = 0.8
_PYTHON = "spark.pyspark.python"
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_memory(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether drivers on this machine require more memory than it has."""
    store = context.entities_if_sound()
    yield from judge_memory(declared_here(store, _MEMORY) if store else {}, memory_of_machine())


def check_workers(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the Python interpreters exist that Spark is configured to start here."""
    store = context.entities_if_sound()
    programs = {name: context.environ[name] for name in _PYTHONS if context.environ.get(name)}
    programs |= declared_here(store, _PYTHON) if store and _on_this_machine(store) else {}
    yield from judge_interpreters(programs, context.environ.get("PATH", os.defpath))


def memory_of_machine() -> int:
    """Returns the bytes of this machine, or of the container that limits it."""
    limits = [psutil.virtual_memory().total]
    for file in map(Path, _LIMITS):
        if file.is_file() and (text := file.read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits)


def declared_here(store: EntityStore, key: str) -> dict[str, str]:
    """Returns the values of a property by place, for clusters whose drivers run here, and their entities."""
    found: dict[str, str] = {}
    for one in store.workloads:
        cluster = store.clusters[one.cluster]
        if not _drives_here(cluster):
            continue
        for entity in (cluster, one.entity):
            if (value := entity.properties.get(key)) is not None:
                found[f"{entity.kind} {entity.name!r}: {key}"] = value
    return found


def _drives_here(cluster: Cluster) -> bool:
    """Of Connect servers, only those on loopback, which ``falcon spark start`` starts, have their driver here."""
    endpoints = [one.endpoint for one in cluster.all_executors]
    return any(not is_connect(one) or served_port(one) is not None for one in endpoints)


def _on_this_machine(store: EntityStore) -> bool:
    return any(_drives_here(store.clusters[one.cluster]) for one in store.workloads)


def judge_memory(asked: Mapping[str, str], total: int) -> Iterator[Diagnosis]:
    """Judges the memory that drivers require, by place (``4g``), of the machine's ``total`` bytes."""
    well = True
    for place, text in asked.items():
        size = size_of(text)
        if size is None:
            well = False
            yield problem(f"{place} is {text!r}, which is not a size", "write it as Spark does, for example 2g or 512m")
        elif size > total:
            well = False
            yield problem(
                f"{place} is {text}, and this machine has {_gib(total)}: the driver is killed, or never starts",
                f"write less than {_gib(total * _MUCH)}",
            )
        elif size > total * _MUCH:
            well = False
            yield warning(
                f"{place} is {text}, and this machine has {_gib(total)} for all that runs on it",
                f"write less than {_gib(total * _MUCH)}",
            )
    if well:
        yield ok(f"this machine has {_gib(total)} of memory, and no driver asks for too much of it")


def size_of(text: str) -> int | None:
    """Returns the bytes of a size in Spark's notation; None: it is none."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) << _UNITS[found[2].lower()] if found else None


def _gib(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def judge_interpreters(programs: Mapping[str, str], path: str) -> Iterator[Diagnosis]:
    """Judges the Python interpreters that Spark is configured to start, by place; ``path`` is searched for them."""
    missing = {place: program for place, program in programs.items() if shutil.which(program, path=path) is None}
    for place, program in missing.items():
        yield problem(
            f"{place} is {program}, which is not a program here: every function in Python fails",
            f"leave {place.rpartition(' ')[2]} out to use this Python, or name one that exists",
        )
    if not missing:
        yield ok(f"{', '.join(programs)} can be started" if programs else "Spark's workers use this Python")
