"""Loads the function of a Python workflow, and calls that of a PySpark one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from filecmp import cmp
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from falcon_assets.compute.engines.computing.task import WorkflowTask
from falcon_assets.compute.spark.failures import explain, is_of_spark, own_line
from falcon_assets.compute.spark.sessions import importable, libs_of
from falcon_assets.errors import FalconError, WorkflowError

_SPARKS_FILES = "userFiles-"
_lock = threading.Lock()
_loaded: dict[Path, tuple[int, ModuleType]] = {}
_libs: dict[Path, int] = {}


def load_function(
    task: WorkflowTask, path: str | None, function: str | None, parameters: str
) -> tuple[Callable[..., Any], str]:
    """Returns the function ``run`` of the file ``path`` below the root, or else ``function``; and its file.

    A file is loaded again when it has changed, and its imports prefer the workflow's ``lib``; a ``package.module:name``
    is imported. Raises WorkflowError if that fails.
    """
    libs = libs_of(task.entity_root, task.workflow.lib).python
    if path is not None:
        where, name = str(task.entity_root / path), "run"
        module = _from_file(task.entity_root / path, libs)
    else:
        where, _, name = (function or "").partition(":")
        module = _from_package(where)
    found = getattr(module, name, None)
    if not callable(found):
        raise WorkflowError(f"{where}: there is no function {name}({parameters}) in it")
    return found, module.__file__ or where


def _from_package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise WorkflowError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        raise WorkflowError(f"{name}: the module cannot be imported: {type(error).__name__}: {error}") from error


def _from_file(path: Path, libs: Sequence[Path]) -> ModuleType:
    try:
        changed = path.stat().st_mtime_ns
        with _lock:
            known = _loaded.get(path)
            if known is None or known[0] != changed:
                _prefer(libs)
                _loaded[path] = known = (changed, _load(path, changed))
            return known[1]
    except OSError as error:
        raise WorkflowError(f"{path}: the workflow's file cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise WorkflowError(f"{error.filename}:{error.lineno}: {error.msg}") from error


def _prefer(libs: Sequence[Path]) -> None:
    """Lets imports find these libraries, and forgets modules of other versions of them."""
    if not libs:
        return
    changed = {one: one.stat().st_mtime_ns for one in libs}
    by_name = {one.name: one for one in libs}
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "-")
        if any(_is_other(one, by_name[one.name], changed) for one in (file, *file.parents) if one.name in by_name):
            del sys.modules[name]
    others = [importable(one) for one in _libs if one.name in by_name and one not in changed]
    left = [one for one in sys.path if one not in others]
    sys.path[:] = [*left, *(one for one in dict.fromkeys(map(importable, libs)) if one not in left)]
    _libs.update(changed)


def _is_other(imported: Path, lib: Path, changed: Mapping[Path, int]) -> bool:
    if imported == lib:
        return _libs.get(lib, changed[lib]) != changed[lib]
    if imported not in _libs and not imported.parent.name.startswith(_SPARKS_FILES):
        return False
    return not imported.is_file() or not cmp(imported, lib, shallow=False)


def _load(path: Path, changed: int) -> ModuleType:
    name = f"falcon_workflow_{path.stem}_{sha256(f'{path}@{changed}'.encode()).hexdigest()[:12]}"
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    if spec is None:
        raise WorkflowError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's file is what this engine is for
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise WorkflowError(f"{own_line(error, str(path))}: {type(error).__name__}: {error}") from error
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # executors cannot import it: functions travel with their code
    return module


def call_function(
    arguments: Sequence[object], task: WorkflowTask, path: str | None, name: str | None, parameters: str
) -> tuple[dict[str, DataFrame], str]:
    """Calls the function; returns the DataFrame of each output, and what to call the function in errors.

    It returns the DataFrame of the one output, or a dict with one per output; nothing where there are no outputs.

    Raises:
        WorkflowError: it cannot be loaded, it failed (with the line of its file), or it returned something else.
    """
    function, file = load_function(task, path, name, parameters)
    try:
        returned = function(*arguments)
    except FalconError:
        raise
    except (Exception, SystemExit) as error:  # exit() would end one thread of the run, which waits for it
        said = explain(error) if is_of_spark(error) else f"{type(error).__name__}: {error}"
        raise WorkflowError(f"{own_line(error, file)}: {said}") from error
    where = f"{file}: {function.__name__}()"
    return by_output(returned, task, where, "DataFrame", _is_frame), where


def _is_frame(value: object) -> bool:
    return isinstance(value, DataFrame)


def by_output(
    returned: object, task: WorkflowTask, where: str, kind: str, is_data: Callable[[object], bool]
) -> dict[str, Any]:
    """Returns what a function returned for each output; raises WorkflowError where it is not one ``kind`` for each."""
    names = [data.name for data in task.outputs]
    declared = ", ".join(names)
    if not names:
        if returned is None or (isinstance(returned, Mapping) and not returned):
            return {}
        said = f"a {kind}" if is_data(returned) else _kind(returned)
        raise WorkflowError(f"{where} returned {said}, but the process has no outputs: return nothing")
    if is_data(returned):
        if len(names) == 1:
            return {names[0]: returned}
        raise WorkflowError(f"{where} returned one {kind} for several outputs: return a dict with {declared}")
    if not isinstance(returned, Mapping):
        raise WorkflowError(
            f"{where} returned {_kind(returned)}: return a {kind}, or a dict of {kind}s with {declared}"
        )
    wrong = [f"{name} is missing" for name in names if name not in returned]
    wrong += [f"{name} is not an output" for name in returned if name not in names]
    wrong += [f"{name} is {_kind(one)}" for name, one in returned.items() if name in names and not is_data(one)]
    if wrong:
        raise WorkflowError(
            f"{where} returned a dict that does not fit: {'; '.join(wrong)}; the outputs are {declared}"
        )
    return dict(returned)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
