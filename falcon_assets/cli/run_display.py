"""What a person sees while instances run in the foreground, and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.coordinator import PlannedRun
from falcon_assets.orchestration.foreground import Display, Outcome
from falcon_assets.orchestration.replication_work import in_words
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.storage.copying.copy_progress import CopyProgress

_SHOWN = 5


def progress_on(console: Console) -> Progress:
    """Progress bars: what, how far, how many, how long."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console)


@contextmanager
def shown_on(console: Console) -> Iterator[Display]:
    """One progress bar per run, and one per copy that takes longer than a moment."""
    tasks: dict[str, TaskID] = {}
    copies: dict[str, TaskID] = {}
    with progress_on(console) as progress:

        def collected(count: int) -> None:
            if count:
                progress.console.print(f"{count} instances landed")

        def started(one: PlannedRun) -> None:
            times = " to ".join(map(format_instant, dict.fromkeys((one.launch.nominals[0], one.launch.nominals[-1]))))
            name = f"{one.member.process.name} on {one.member.cluster.name} {times}"
            tasks[one.run_key] = progress.add_task(name, total=len(one.launch.nominals))

        def moved(one: PlannedRun, count: int) -> None:
            progress.update(tasks[one.run_key], completed=count)

        def waits(at: datetime) -> None:
            progress.console.print(f"waiting for a retry at {at:%Y-%m-%dT%H:%M:%SZ}")

        def copying(name: str, now: CopyProgress) -> None:
            if now.files < now.of_files:
                if name not in copies:
                    copies[name] = progress.add_task(name, total=now.of_files)
                progress.update(copies[name], completed=now.files, description=f"{name}: {in_words(now)}")
            elif name in copies:
                progress.remove_task(copies.pop(name))

        yield Display(collected, started, moved, waits, copying)


def tell(console: Console, outcome: Outcome) -> None:
    """Says what went wrong and what waits for what."""
    for one in outcome.trouble:
        what = "timed out" if one.state is InstanceState.TIMED_OUT else "failed"
        console.print(f"{one.process} on {one.cluster} {format_instant(one.nominal)} {what}: {one.reason}")
    for (process, cluster), decision in outcome.outlook.decisions.items():
        waiting = list(decision.waiting.items())
        for nominal, reason in waiting[:_SHOWN]:
            console.print(f"{process} on {cluster} {format_instant(nominal)}: {reason}")
        more = max(len(waiting) - _SHOWN, 0) + decision.further
        if more:
            console.print(f"... and {more} more instances of {process} on {cluster} wait")
