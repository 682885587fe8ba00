"""Display of instances that run in the foreground, while they run and after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from falcon_assets.base.texts import visible
from falcon_assets.errors import count_of
from falcon_assets.features.replication.run import in_words
from falcon_assets.instances.coordination.coordinator import PlannedRun
from falcon_assets.instances.coordination.ticks import further_wait
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.storage.copying.copy_task import CopyProgress
from falcon_assets.surface.foreground.foreground import ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display

_SHOWN = 5
_SAID_EVERY_SECONDS = 20.0
_LOOKING = "looking for data, and for what is ready"


def progress_on(console: Console) -> Progress:
    """Progress bars: what, how far, how many, how long."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # What libraries and workflows say goes to the log.
    return Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False)


@contextmanager
def shown_on(console: Console) -> Iterator[Display]:
    """Live progress: bars on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _lines(console)
        return
    with progress_on(console) as progress:
        yield _bars(progress)


def _bars(progress: Progress) -> Display:
    """One progress bar per run, and one per copy that takes longer than a moment; one that moves while none runs."""
    tasks: dict[str, TaskID] = {}
    copies: dict[str, TaskID] = {}
    idle = progress.add_task(_LOOKING, total=None)

    def collected(count: int) -> None:
        if count:
            progress.console.print(_landed(count))

    def started(one: PlannedRun) -> None:
        tasks[one.run_key] = progress.add_task(_name(one), total=len(one.launch.nominals))
        progress.update(idle, visible=False)

    def moved(one: PlannedRun, count: int) -> None:
        progress.update(tasks[one.run_key], completed=count)
        progress.update(idle, visible=count >= len(one.launch.nominals))

    def waits(at: datetime) -> None:
        progress.console.print(_waits(at))

    def copying(name: str, now: CopyProgress) -> None:
        if now.files < now.of_files:
            if name not in copies:
                copies[name] = progress.add_task(name, total=now.of_files)
            progress.update(copies[name], completed=now.files, description=f"{name}: {in_words(now)}")
        elif name in copies:
            progress.remove_task(copies.pop(name))

    return Display(collected, started, moved, waits, copying)


def _lines(console: Console) -> Display:
    """The same for logs and pipes: a line when something begins, and one at least every so often."""
    said: dict[str, float] = {}

    def say(name: str, text: str, *, always: bool = True) -> None:
        now = time.monotonic()
        if always or now - said.get(name, now) >= _SAID_EVERY_SECONDS:
            said[name] = now
            console.print(text, soft_wrap=True)

    def collected(count: int) -> None:
        if count:
            say("", _landed(count))

    def started(one: PlannedRun) -> None:
        say(one.run_key, f"runs {_name(one)}")

    def moved(one: PlannedRun, count: int) -> None:
        say(one.run_key, f"runs {_name(one)}: {count} of {len(one.launch.nominals)} are over", always=False)

    def waits(at: datetime) -> None:
        say("", _waits(at))

    def copying(name: str, now: CopyProgress) -> None:
        said.setdefault(name, time.monotonic())
        say(name, f"{name}: {in_words(now)}", always=False)

    say("", _LOOKING)
    return Display(collected, started, moved, waits, copying)


def _name(one: PlannedRun) -> str:
    times = " to ".join(map(format_instant, dict.fromkeys((one.launch.nominals[0], one.launch.nominals[-1]))))
    return f"{one.workload.name} on {one.workload.cluster} {times}"


def _landed(count: int) -> str:
    return f"{count_of(count, 'instance')} landed"


def _waits(at: datetime) -> str:
    return f"waiting for a retry at {at:%Y-%m-%dT%H:%M:%SZ}"


def show_outcome(console: Console, outcome: ForegroundResult) -> None:
    """Prints problems and waiting instances, each in a line, however narrow the terminal or a log is."""
    say = partial(console.print, markup=False, soft_wrap=True)
    for it in outcome.trouble:
        what = "timed out" if it.state is InstanceState.TIMED_OUT else "failed"
        say(visible(f"{it.process} on {it.cluster} {format_instant(it.nominal)} {what}: {it.reason}"))
    for one in outcome.waiting:
        for nominal, reason in one.instances[:_SHOWN]:
            say(visible(f"{one.process} on {one.cluster} {format_instant(nominal)}: {reason}"))
        more = max(len(one.instances) - _SHOWN, 0) + one.further
        if more:
            say(further_wait(more, one.process, one.cluster))
