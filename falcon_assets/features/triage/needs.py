"""Inputs of an instance, with which the search for causes continues."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.features.triage.chain import beginnings, own_output
from falcon_assets.features.triage.known import Answers, Data, Work
from falcon_assets.instances.rules.readiness import MissingInput, missing_input
from falcon_assets.model.process import Input
from falcon_assets.planning.input_windows import input_instances, latest_instances
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class Needs:
    """The inputs of an instance, existing or not.

    Attributes:
        works: The beginnings of its chain: instances of its own process.
        own: Their outputs.
        between: The number of instances between it and those.
        unnamed: Missing inputs without an instance: snapshot versions used before or by others, and empty windows.
    """

    inputs: tuple[tuple[Data, MissingInput], ...]
    works: tuple[Work, ...] = ()
    own: tuple[MissingInput, ...] = ()
    between: int = 0
    unnamed: tuple[MissingInput, ...] = ()


def needs_of(work: Work, workload: Workload, answers: Answers, *, is_asked_for: bool = False) -> Needs:
    """Returns the required inputs of an instance; one with a requested rerun may use a version again.

    Raises:
        UnknownEntityError: a feed is not on the cluster.
        ExpressionError: a window is outside of the years 1 to 9999.
    """
    inputs: list[tuple[Data, MissingInput]] = []
    empty: list[MissingInput] = []
    chain, own = None, own_output(workload)
    if own is not None:
        feed = own.feed
        writes = own.written
        chain = beginnings(
            own,
            work.nominal,
            lambda first, last: answers.stretch(work, feed, (first, last), (writes(first), writes(last))),
        )
    for declared in workload.inputs:
        if declared.optional or (own is not None and declared.feed == own.feed):
            continue
        line = feed_timeline(workload.feeds[declared.feed], workload.cluster)
        window: list[datetime]
        if declared.is_of_times:
            window = input_instances(declared, line, work.nominal, workload.timezone)
        else:
            found = _of_available(work, workload, declared, line, answers)
            if found is None:
                empty.append(MissingInput(declared.name, declared.feed, f"{declared.start} to {declared.end}"))
            window = found or []
        read, cluster = workload.feeds[declared.feed], workload.reads_on
        inputs += ((Data(read.name, cluster, one), missing_input(declared.name, read, one)) for one in window)
    works, written = list[Work](), list[MissingInput]()
    if chain is not None and own is not None:
        name = next(one.name for one in workload.inputs if one.feed == own.feed and not one.optional)
        for nominal in chain.begins:
            missing = MissingInput(name, own.feed, own.written(nominal))
            if workload.timeline.contains(nominal):
                works.append(Work(work.workload, work.cluster, nominal))
                written.append(missing)
            else:
                inputs.append((Data(own.feed, work.cluster, own.written(nominal)), missing))
        for instance in chain.evicted:
            inputs.append((Data(own.feed, work.cluster, instance), MissingInput(name, own.feed, instance)))
    newer = None if is_asked_for else answers.newer(workload)
    unnamed = (*empty, *(newer.missing(work.nominal) if newer else ()))
    return Needs(tuple(inputs), tuple(works), tuple(written), chain.between if chain else 0, unnamed)


def _of_available(
    work: Work, workload: Workload, declared: Input, line: Timeline, answers: Answers
) -> list[datetime] | None:
    """Returns the window of ``latest`` or ``future``; if not full, the nearest missing instance; None without one."""
    nominal, cluster = work.nominal, workload.reads_on
    if declared.start.call.name == "future":
        limits = [number for call in (declared.start.call, declared.end.call) for number in call.args[1:]]
        ahead = line.indexes(nominal, line.end)[: max(int(str(one)) for one in limits)]
        first, last = (line.instance(ahead[0]), line.instance(ahead[-1])) if ahead else (nominal, nominal)
        there = answers.available(cluster, declared.feed, first, last)
        nearest = [line.instance(k) for k in ahead]
    else:
        back = -min(
            int(str(call.args[0])) for call in (declared.start.call, declared.end.call) if call.name == "latest"
        )
        there = answers.newest(cluster, declared.feed, nominal, back + 1)
        before = line.indexes(line.start, nominal)[::-1][: back + 2]
        nearest = [line.instance(k) for k in before]
    window = latest_instances(declared, line, nominal, there, workload.timezone)
    if window is not None:
        return window
    return [one for one in nearest if one not in there][:1] or None
