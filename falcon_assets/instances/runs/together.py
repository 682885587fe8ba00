"""Instances of a run that meet when they are to be computed, so that one query can do it for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any

from falcon_assets.base.cancellation import Cancellation, CancelledError, cancellable, current_cancellation
from falcon_assets.base.texts import recorded
from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together_joins import AloneError

MOST_BYTES = 1 << 30
"""Of inputs, in files, that one query reads for its instances."""
MOST_OF_ONE = 64 << 20
"""An instance that reads more has work for several tasks of Spark: it is computed alone."""
_EXAMPLES = 3
"""How many instances may fail alone before all others are computed alone, too."""


@dataclass(eq=False)
class _Member:
    """An instance that waits. ``result`` None, once it is told: it computes alone, and then has settled."""

    task: WorkflowTask
    told: Event = field(default_factory=Event)
    settled: Event = field(default_factory=Event)
    result: WorkflowResult | None = None
    example: Any = None
    has_left: bool = False

    def tell(self, result: WorkflowResult | None = None) -> None:
        self.result = result
        self.told.set()

    def leave(self) -> None:
        self.has_left = True
        self.told.set()
        self.settled.set()

    @property
    def bytes(self) -> int:
        return sum(sum(files.sizes.values()) for one in self.task.inputs for files in one.counted)


class Gathering:
    """Computes instances of a run together, as far as their engine can; safe from several threads.

    A batch begins when all instances that have begun wait for it, so it has at most as many as may be computed at once.
    The first one is computed alone: it shows how the others have to look. Where the query fails for many, it is tried
    with halves of them, until those that it fails for are alone.
    """

    def __init__(self, unfinished: int, at_once: int, say: Callable[[str], None]) -> None:
        """``unfinished``: how many instances the run has; ``say`` is told why they are computed alone."""
        self._unfinished, self._at_once, self._say = unfinished, at_once, say
        self._elsewhere = 0
        self._changed = Condition()
        self._waiting: list[_Member] = []
        self._examples: list[Any] = []
        self._alone: dict[object, str] = {}
        self._is_over = False

    @contextmanager
    def instance(self) -> Iterator[None]:
        """What an instance does from its begin to its end."""
        try:
            yield
        finally:
            with self._changed:
                self._unfinished -= 1
                self._begin_if_all()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """What an instance does that may take long, as another run has it: the others do not wait for it."""
        self._count_elsewhere(1)
        try:
            yield
        finally:
            self._count_elsewhere(-1)

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        """As :func:`.run_workflow`; raises CancelledError, too."""
        if self._at_once < task.workflow.fewest_together or self._why_alone(task):
            return run_workflow(task)
        member = _Member(task)
        with current_cancellation().ended_by(member.leave):
            with self._changed:
                self._waiting.append(member)
                self._begin_if_all()
            member.told.wait()
            current_cancellation().check()
            if self._is_over:
                raise CancelledError("the run is interrupted")
            if member.result is not None:
                return member.result
            try:
                result = run_workflow(task)
                self._keep_example(member, result)
                return result
            finally:
                member.settled.set()

    def end(self) -> None:
        """Nothing begins any more: the run is interrupted."""
        self._is_over = True
        with self._changed:
            for member in self._waiting:
                member.tell()
            self._waiting.clear()

    def _keep_example(self, member: _Member, result: WorkflowResult) -> None:
        try:
            member.example = member.task.workflow.example(member.task, result)
        except AloneError as error:
            self._refuse([member], error)

    def _count_elsewhere(self, more: int) -> None:
        with self._changed:
            self._elsewhere += more
            self._begin_if_all()

    def _begin_if_all(self) -> None:
        if self._waiting and len(self._waiting) >= min(self._at_once, self._unfinished) - self._elsewhere:
            members, self._waiting = self._waiting, []
            threading.Thread(target=self._run, args=(members,), name="together", daemon=True).start()

    def _run(self, members: list[_Member]) -> None:
        """Tells every member, whatever happens."""
        try:
            self._tell(members)
        finally:
            for member in members:
                if not member.told.is_set():
                    member.tell()

    def _tell(self, members: list[_Member]) -> None:
        left = [one for one in members if one.bytes <= MOST_OF_ONE]
        for one in members:
            if one not in left:
                one.tell()
        while left:
            example, rest = self._example(left)
            alike = [one for one in rest if example is not None and example.is_like(one.task)]
            for batch in _by_bytes(alike):
                self._compute(batch, example)
            left = [one for one in rest if one not in alike]
            if example is None:
                for one in left:
                    one.tell()
                return

    def _example(self, members: list[_Member]) -> tuple[Any, list[_Member]]:
        """One that the first is like, or one of them, computed alone, with the others; None: they fail."""
        for known in self._examples:
            if known.is_like(members[0].task):
                return known, members
        for tried, member in enumerate(members[:_EXAMPLES], 1):
            member.tell()
            member.settled.wait()
            if member.example is not None:
                self._examples.append(member.example)
                return member.example, members[tried:]
            if self._why_alone(member.task):
                return None, members[tried:]
        return None, members[_EXAMPLES:]

    def _compute(self, members: Sequence[_Member], example: Any) -> None:
        present = [one for one in members if not one.has_left]
        if len(present) < 2 or self._is_over or self._why_alone(present[0].task):
            for one in members:
                one.tell()
            return
        with _ended_with_all(present):
            try:
                results = present[0].task.workflow.compute_together([one.task for one in present], example)
            except AloneError as error:
                self._refuse(present, error)
            except Exception as error:  # whatever it is, it may be that of one of them, which then says it itself
                middle = len(present) // 2
                self._say(f"{len(present)} instances cannot be computed together, halves are tried: {_short(error)}")
                self._compute(present[:middle], example)
                self._compute(present[middle:], example)
            else:
                for one, result in zip(present, results, strict=True):
                    one.tell(result)

    def _refuse(self, members: Sequence[_Member], error: AloneError) -> None:
        self._alone[_key(members[0].task)] = str(error)
        self._say(f"instances are computed one by one: {_short(error)}")
        for one in members:
            one.tell()

    def _why_alone(self, task: WorkflowTask) -> str:
        """Why instances with this workflow are computed one by one; empty: they need not."""
        with self._changed:
            if (key := _key(task)) not in self._alone:
                inputs, outputs = [one.feed for one in task.inputs], [one.feed for one in task.outputs]
                self._alone[key] = task.workflow.why_alone(task.entity_root, task.cluster.name, inputs, outputs)
            return self._alone[key]


def _key(task: WorkflowTask) -> object:
    return task.entity_root, task.workflow.engine, task.workflow.program, tuple(one.name for one in task.inputs)


_CURRENT: ContextVar[Gathering | None] = ContextVar("gathering", default=None)


def compute_with_others(task: WorkflowTask) -> WorkflowResult:
    """As :meth:`.Gathering.compute` of this context, else :func:`.run_workflow`."""
    gathering = _CURRENT.get()
    return run_workflow(task) if gathering is None else gathering.compute(task)


@contextmanager
def gathered(by: Gathering) -> Iterator[None]:
    token = _CURRENT.set(by)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def _ended_with_all(members: Sequence[_Member]) -> Iterator[None]:
    """Cancels the query when nobody waits for it any more."""
    is_done, own = Event(), Cancellation()

    def watch() -> None:
        while not is_done.wait(1):
            if all(one.has_left for one in members):
                own.cancel("nobody waits for it")
                return

    watcher = threading.Thread(target=watch, name="together waits", daemon=True)
    watcher.start()
    try:
        with cancellable(own):
            yield
    finally:
        is_done.set()


def _short(error: Exception) -> str:
    return recorded(str(error) or type(error).__name__)


def _by_bytes(members: Sequence[_Member]) -> Iterator[list[_Member]]:
    batch, size = list[_Member](), 0
    for one in members:
        if batch and size + one.bytes > MOST_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.bytes
    if batch:
        yield batch
