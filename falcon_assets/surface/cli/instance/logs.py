"""``falcon instance logs``: what was said about one instance; nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.instances.operations.logs import LogsOfInstance
from falcon_assets.instances.views.logs.instance_runs import InstanceRun
from falcon_assets.instances.views.logs.reading import InstanceLogs, SaidEvent
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command_of
from falcon_assets.surface.cli.entity.words import moment


@command_of(LogsOfInstance, "Print JSON instead of text.")
@click.option("--all", "whole", is_flag=True, help="Print the whole logs, not only their last lines.")
def logs(asked: LogsOfInstance, whole: bool, as_json: bool) -> None:
    with open_installation() as installation:
        found = asked.run(installation)
        lines = _json(found, whole=whole) if as_json else map(_shown, _text(found, whole=whole))
        for line in lines:
            click.echo(line)


def _shown(line: str) -> str:
    """Removes control characters: output of a program must not act on the terminal."""
    return printable(click.unstyle(line).expandtabs())


def _text(found: InstanceLogs, *, whole: bool) -> Iterator[str]:
    info, run = found.instance, found.run
    yield f"{info.entity} on {info.cluster}, {format_instant(info.instance)}: {info.state.value}"
    yield from (f"    {line}" for line in found.hide(info.reason["text"] if info.reason else "").splitlines())
    if run is None:
        yield "no run was given it"
    else:
        yield from _about(run, found.runs)
    events, cut = (found.events(), False) if whole else found.last_events()
    printed = chain.from_iterable(map(_event, events))
    yield from _section("events", cut, printed)
    for log in found.logs:
        lines, cut = (log.lines(), False) if whole else log.tail()
        title = f"{log.source}{', shared by the instances of the run' if log.shared else ''}: {log.place}"
        yield from _section(title, cut, lines)


def _about(run: InstanceRun, runs: Iterable[InstanceRun]) -> Iterator[str]:
    said = f"attempt {run.attempt}: run {run.run}"
    if run.status is None:
        yield f"{said} was deleted in Dagster, and with it what it said"
    elif run.instances is None or run.first is None or run.last is None:
        yield f"{said}, {run.status}"
    else:
        ends = f"{format_instant(run.first)} to {format_instant(run.last)}"
        siblings = f", with {count_of(run.instances, 'instance')}: {ends}" if run.instances > 1 else ""
        yield f"{said}, {run.status}{siblings}"
    others = [one for one in runs if one is not run]
    if others:
        yield "other attempts: " + ", ".join(f"{one.attempt} (run {one.run})" for one in others)


def _section(title: str, cut: bool, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield f"== {title}{' (the end of it; --all: all)' if cut else ''}"
    is_empty = True
    for line in lines:
        is_empty = False
        yield line
    if is_empty:
        yield "(nothing)"


def _event(event: SaidEvent) -> Iterator[str]:
    first, *rest = event.text.splitlines() or [""]
    yield f"{moment(event.at)} {'run ' if event.shared else ''}{event.type}: {first}"
    yield from (f"    {line}" for line in rest)


def _json(found: InstanceLogs, *, whole: bool) -> Iterator[str]:
    """The object in parts, however much there is: its last two lists are not held in memory."""
    events = found.events() if whole else found.last_events()[0]
    lines = (
        {"log": number, "source": log.source, "text": text}
        for number, log in enumerate(found.logs)
        for text in (log.lines() if whole else log.tail()[0])
    )
    yield json.dumps(found.as_data(), indent=2).removesuffix("\n}") + ","
    yield from _list("events", (one.as_data() for one in events))
    yield ","
    yield from _list("lines", lines)
    yield "}"


def _list(key: str, items: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield f"  {json.dumps(key)}: ["
    before = ""
    for item in items:
        yield f"    {before}{json.dumps(item)}"
        before = ", "
    yield "  ]"
