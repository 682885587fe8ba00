"""Calls the function of the engine ``python`` with its inputs as Arrow datasets, and writes what it returns."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import NoReturn, TypeVar

import pyarrow as pa

from falcon_assets.base.cancellation import CancelledError, current_cancellation
from falcon_assets.compute.arrow.reading import dataset_of, local_path
from falcon_assets.compute.arrow.spark_types import spark_name
from falcon_assets.compute.arrow.writing import count_written, folder_of, reader_of, write_rows
from falcon_assets.compute.engines.computing.python import by_output, load_function
from falcon_assets.compute.engines.computing.task import Instance, WorkflowResult, WorkflowTask, exits_refused
from falcon_assets.compute.spark.data.dataset import InputData, OutputData
from falcon_assets.compute.spark.failures import own_line, python_failure
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.errors import FalconError, WorkflowError
from falcon_assets.planning.captured import Captured, ColumnRead, DataRead, DataWrite
from falcon_assets.planning.version_columns import OutputColumn

_T = TypeVar("_T")
_TRACEBACK = "Traceback (most recent call last)"


def compute_with_arrow(task: WorkflowTask, path: str | None, name: str | None) -> WorkflowResult:
    """Calls ``run(inputs, instance)``: inputs by name, each read as an Arrow dataset when it is asked for.

    ``instance`` is an :class:`.Instance` with folders of this machine. The function returns the data of the one
    output, or a dict with that of each: whatever Arrow reads, or a pandas DataFrame. What it writes into the folder
    of an output itself it need not return.

    Raises:
        CancelledError: it was cancelled meanwhile.
        WorkflowError: it cannot be loaded, it failed (with the line of its file), or its data does not fit.
    """
    function, file = load_function(task, path, name, "inputs, instance")
    by_name = {key: one for data in task.inputs for key, one in data.by_name.items()}
    used = set[str]()
    inputs = _Used({key: partial(dataset_of, one) for key, one in by_name.items()}, used)
    for data in task.outputs:
        folder_of(data).mkdir(parents=True, exist_ok=True)
    where = f"{file}: {function.__name__}()"
    with in_utc(), exits_refused(), _cancellable_thread():
        try:
            returned = function(inputs, _instance(task, by_name, used))
            rows = _rows(returned, task, where)
            written = {data.name: _written(rows.get(data.name), data) for data in task.outputs}
        except (FalconError, CancelledError):
            raise
        except (Exception, SystemExit) as error:  # exit() would end one thread of the run, which waits for it
            if _TRACEBACK in str(error):  # of a generator that Arrow asks for batches
                raise WorkflowError(python_failure(str(error))) from error
            raise WorkflowError(f"{own_line(error, file)}: {type(error).__name__}: {error}") from error
    reads = [DataRead(one.urls, one.urls, True) for key, one in by_name.items() if key in used and one.urls]
    writes = [_write(data, written[data.name][1]) for data in task.outputs]
    records = {name: count for name, (count, _) in written.items()}
    return WorkflowResult(records, "", Captured(tuple(reads), tuple(writes)))


class _Used(Mapping[str, _T]):
    """Values that are made when they are asked for first; ``used`` knows the names."""

    def __init__(self, made: Mapping[str, Callable[[], _T]], used: set[str]) -> None:
        self._made, self._used = made, used
        self._values: dict[str, _T] = {}

    def __getitem__(self, name: str) -> _T:
        if name not in self._values:
            self._values[name] = self._made[name]()
            self._used.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def _instance(task: WorkflowTask, inputs: Mapping[str, InputData], used: set[str]) -> Instance:
    def folders(data: InputData) -> tuple[str, ...]:
        return tuple(local_path(url, data.title) for url in data.urls)

    made = {name: partial(folders, data) for name, data in inputs.items()}
    own = {data.name: str(folder_of(data)) for data in task.outputs}
    return replace(task.instance, inputs=_Used(made, used), outputs=own)


def _rows(returned: object, task: WorkflowTask, where: str) -> dict[str, pa.RecordBatchReader]:
    """What was returned of outputs; those that are left out were written by the function."""
    if returned is None:
        return {}
    given = dict(returned) if isinstance(returned, Mapping) else returned
    if isinstance(given, dict):
        given = {data.name: None for data in task.outputs} | given
    found = by_output(given, task, where, "table", lambda value: value is None or _is_data(value))
    readers = {name: reader_of(value) for name, value in found.items() if value is not None}
    return {name: reader for name, reader in readers.items() if reader is not None}


def _is_data(value: object) -> bool:
    return not isinstance(value, Mapping) and reader_of(value) is not None


def _written(rows: pa.RecordBatchReader | None, data: OutputData) -> tuple[int, pa.Schema | None]:
    return (count_written(data), None) if rows is None else write_rows(rows, data)


def _write(data: OutputData, schema: pa.Schema | None) -> DataWrite:
    """Nobody knows what its columns were made from."""
    each: tuple[OutputColumn[ColumnRead], ...] = tuple(
        OutputColumn(field.name, spark_name(field.type), is_opaque=True) for field in schema or ()
    )
    return DataWrite(each, are_rows_opaque=True, path=data.url)


class _TooLate(BaseException):
    """Comes instead of a cancellation that the function did not live to see."""


@contextmanager
def _cancellable_thread() -> Iterator[None]:
    """Lets a cancellation raise CancelledError in this thread, at the next step of its Python code."""
    thread, lock = threading.get_ident(), threading.Lock()
    is_inside, is_sent = True, False

    def end() -> None:
        nonlocal is_sent
        with lock:
            if is_inside:
                is_sent = True
                _raise_in(thread, CancelledError)

    try:
        with current_cancellation().ended_by(end):
            yield
    finally:
        with lock:
            is_inside = False
        if is_sent:
            # What does not come leaves the interpreter looking for it at every step, and without end under a profiler.
            with suppress(_TooLate):
                _raise_in(thread, _TooLate)
                _work_on()
    current_cancellation().check()


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _work_on() -> NoReturn:
    while True:
        time.sleep(0)
