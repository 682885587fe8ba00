"""Check of ``dagster.yaml``: the storage of Dagster's history, the number of runs, and the classes that start them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning

_FILE = "dagster.yaml"
_CLASS = "module: falcon_assets.dagster_instance, class: FalconStorage, config: {}"
_STORAGE = f"storage: {{custom: {{{_CLASS}}}}}"
_PARTS_OF_STORAGE = ("run_storage", "event_log_storage", "schedule_storage")
_COPY = "copy the one of falcon-assets there"
FindClass: TypeAlias = Callable[[str, str, Mapping[str, Any]], "type[Any] | str"]
"""Returns the class of that name in that module, or the reason why Dagster cannot make one with that configuration."""


def check_instance(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether Dagster keeps its history where the ledger reads it, and can start runs."""
    home = context.environ.get("DAGSTER_HOME")
    folder = Path(home).expanduser() if home else Path.cwd()
    file = folder / _FILE
    if home and not (folder.is_absolute() and folder.is_dir()):
        how = "no folder" if folder.is_absolute() else "no absolute path"
        yield problem(f"DAGSTER_HOME is {home}, which is {how}: no command of Dagster starts", f"name that of {_FILE}")
    elif not file.is_file():
        yield judge_absence(folder, is_set=bool(home))
    else:
        yield from _of_file(file, context.environ)


def judge_absence(folder: Path, *, is_set: bool) -> Diagnosis:
    """Judges a folder without ``dagster.yaml``; ``is_set``: DAGSTER_HOME names it, else Dagster is started in it."""
    if is_set:
        return problem(
            f"there is no {_FILE} in DAGSTER_HOME {folder}: Dagster keeps its history in SQLite there",
            f"{_COPY}, or name its folder in DAGSTER_HOME",
        )
    return warning(
        f"there is no {_FILE} in {folder}, and DAGSTER_HOME is not set: a Dagster that is started here forgets its "
        "history when it ends",
        f"{_COPY}, or set DAGSTER_HOME to its folder",
    )


def _of_file(file: Path, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    from falcon_assets.history.dagster_internals.instance_config import (  # noqa: PLC0415 - loads Dagster
        config_errors,
        find_class,
    )

    try:
        declared = yaml.safe_load(file.read_text()) or {}
    except (OSError, UnicodeError) as error:
        yield problem(f"{file} cannot be read: {error}", "fix that: Dagster does not start with it")
        return
    except yaml.YAMLError as error:
        yield problem(f"{file} is not valid YAML: {error}", "fix that: Dagster does not start with it")
        return
    if not isinstance(declared, dict):
        yield problem(f"{file} is no mapping", "fix that: Dagster does not start with it")
        return
    errors = config_errors(file.parent)
    yield from (problem(f"{file}: {one}", "fix that: Dagster does not start with it") for one in errors)
    if not errors:
        yield from judge_declared(file, declared, environ, find_class)


def judge_declared(
    file: Path, declared: Mapping[str, Any], environ: Mapping[str, str], find: FindClass
) -> Iterator[Diagnosis]:
    """Judges the content of ``dagster.yaml``, which Dagster accepts; ``environ`` is for values like ``{env: NAME}``."""
    said = [*_missing(file, declared, find), *_history(file, declared, find), *_slots(file, declared, environ)]
    yield from said
    if not said:
        yield ok(f"{file} keeps history where the ledger reads it, and its classes are there")


def _missing(file: Path, declared: Mapping[str, Any], find: FindClass) -> Iterator[Diagnosis]:
    for part, one in _classes(declared):
        if isinstance(found := find(one["module"], one["class"], one.get("config") or {}), str):
            yield problem(f"{file}: {part}: {found}", f"fix {part}, or leave it out")


def _classes(declared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part, value in declared.items():
        one = value.get("custom", value) if isinstance(value, dict) else None
        if isinstance(one, dict) and "module" in one and "class" in one:
            yield part, one


def _history(file: Path, declared: Mapping[str, Any], find: FindClass) -> Iterator[Diagnosis]:
    """Yields nothing if history is in PostgreSQL, with partitions for frequencies without a cron line."""
    storage = declared.get("storage")
    parts = [str(declared[part].get("class")) for part in _PARTS_OF_STORAGE if part in declared]
    if not storage and not parts:
        yield problem(f"{file} names no storage: Dagster keeps its history in SQLite", f"write into it {_STORAGE}")
        return
    kind = next(iter(storage), "") if storage else ", ".join(parts)
    if kind == "custom" and storage:
        custom = storage["custom"]
        found = find(custom["module"], custom["class"], custom.get("config") or {})
        from falcon_assets.history.platform.instance_storage import FalconStorage  # noqa: PLC0415 - loads Dagster

        if isinstance(found, str) or issubclass(found, FalconStorage):
            return  # what is not there, has been said
        kind = found.__name__
    if "sqlite" in kind.lower() or "mysql" in kind.lower():
        where = "SQLite" if "sqlite" in kind.lower() else "MySQL"
        yield problem(
            f"{file}: Dagster keeps its history in {where}, and the ledger reads PostgreSQL", f"write {_STORAGE}"
        )
    else:
        yield warning(
            f"{file}: history is kept by {kind}: entities whose frequency no cron expression can express have no "
            "partitions, and FALCON_DATABASE_URL must name the same database",
            f"write {_STORAGE}",
        )


def _slots(file: Path, declared: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    places = (
        ("concurrency.runs", (declared.get("concurrency") or {}).get("runs")),
        ("run_queue", declared.get("run_queue")),
        ("run_coordinator.config", (declared.get("run_coordinator") or {}).get("config")),
    )
    for where, found in places:
        value = (found or {}).get("max_concurrent_runs")
        value = environ.get(str(value.get("env"))) if isinstance(value, dict) else value
        if str(value) == "0":
            key = f"{where}.max_concurrent_runs"
            yield problem(f"{file}: {key} is 0: no run ever starts", f"let {key} be 1 or more, or leave it out")
