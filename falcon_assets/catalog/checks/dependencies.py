"""Checks that no instance waits for itself, directly or indirectly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from falcon_assets.catalog.declared import Declared, Definitions, transfers_of
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input, Process
from falcon_assets.model.transfer import Import
from falcon_assets.planning.dependencies import Edge, Node, dependencies, find_cycle, own_feeds
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.self_dependency import AnyOf, Copied, Read, SelfWait, Step, Way, Write, first_self_wait
from falcon_assets.planning.timeline import feed_timeline, process_timeline

_MOST = 1000
"""Limit of different cycles that are checked; definitions with more are refused."""


def check_cycles(definitions: Definitions) -> Iterator[Problem]:
    """Reports each process with an instance that would wait for itself, unless a reported cycle names it.

    A process may read earlier instances of its own outputs, and what is made from them. All possible reads count, even
    optional ones: an optional input that lands later is late data, and would cause reruns for ever.
    """
    for process in definitions.processes.values():
        yield from _own_outputs(definitions, process)
    edges = list(dependencies(*_entities(definitions)))
    if find_cycle(edges):
        yield from _others(definitions, _cycles_by_length(edges))


def _cycles_by_length(edges: Iterable[Edge]) -> list[list[Node]]:
    """Returns at most :data:`_MOST` cycles, the shortest first, each from an input feed of its first process."""
    import networkx as nx  # noqa: PLC0415 - takes 0.2 seconds, and hardly any definitions have cycles

    found = (_from_first_process(cycle) for cycle in islice(nx.simple_cycles(nx.DiGraph(edges)), _MOST))
    return sorted(found, key=lambda cycle: (len(cycle), cycle))


def _from_first_process(cycle: list[Node]) -> list[Node]:
    first = cycle.index(min(node for node in cycle if node[0] == "process")) - 1
    turned = [*cycle[first:], *cycle[:first]] if first >= 0 else [cycle[-1], *cycle[:-1]]
    return [*turned, turned[0]]


def _own_outputs(definitions: Definitions, process: Declared[Process]) -> Iterator[Problem]:
    own = own_feeds(process.entity.inputs, process.entity.outputs)
    reported = set[int]()
    for entry in process.entity.clusters if own else ():
        for index, declared in enumerate(process.entity.inputs):
            node = ("feed", declared.feed, entry.name)
            cycle = [node, ("process", process.entity.name, entry.name), node]
            if declared.feed in own and index not in reported:
                for way in _ways(definitions, cycle, index):
                    wait = first_self_wait(way)
                    if wait is not None:
                        reported.add(index)
                        yield _problem(definitions, cycle, index, wait)


def _others(definitions: Definitions, cycles: list[list[Node]]) -> Iterator[Problem]:
    reported = set[str]()
    for cycle in cycles:
        names = {name for kind, name, _ in cycle if kind == "process"}
        if not names & reported:
            problem = _first_problem(definitions, cycle, too_many=len(cycles) >= _MOST)
            if problem is not None:
                reported |= names
                yield problem


def _first_problem(definitions: Definitions, cycle: list[Node], *, too_many: bool) -> Problem | None:
    for index, declared in enumerate(definitions.processes[cycle[1][1]].entity.inputs):
        if declared.feed == cycle[0][1]:
            for way in _ways(definitions, cycle, index):
                wait = first_self_wait(way)
                if wait is not None or too_many:
                    return _problem(definitions, cycle, index, wait)
    return None


def _ways(definitions: Definitions, cycle: list[Node], index: int) -> Iterator[Way]:
    """The way back to the process by its input of that index; none where another check reports a missing entity."""
    steps = []
    for before, after in [(cycle[0], cycle[1]), *reversed(list(pairwise(cycle))[1:])]:
        step = _step(definitions, (before, after))
        if step is None:
            return
        steps.append(step)
    first = _read(definitions, cycle[0], cycle[1], index)
    yield (first, *steps[1:])


def _step(definitions: Definitions, edge: Edge) -> Step | None:
    before, after = edge
    for kind, name, cluster in edge:
        entity = definitions.processes.get(name) if kind == "process" else definitions.feeds.get(name)
        if entity is None or entity.entity.on(cluster) is None:
            return None
    if after[0] == "process":
        process = definitions.processes[after[1]].entity
        indexes = [index for index, one in enumerate(process.inputs) if one.feed == before[1]]
        return AnyOf(tuple(_read(definitions, before, after, index) for index in indexes))
    feed = feed_timeline(definitions.feeds[after[1]].entity, after[2])
    if before[0] == "feed":
        return Copied(feed, feed_timeline(definitions.feeds[before[1]].entity, before[2]))
    process = definitions.processes[before[1]].entity
    call = next(one.instance.call for one in process.outputs if one.feed == after[1])
    return Write(feed, process_timeline(process, before[2]), call, process.timezone)


def _read(definitions: Definitions, feed: Node, reader: Node, index: int) -> Read:
    process = definitions.processes[reader[1]].entity
    declared = process.inputs[index]
    timeline = feed_timeline(definitions.feeds[feed[1]].entity, feed[2])
    nominal = process_timeline(process, reader[2])
    return Read(nominal, timeline, declared.start.call, declared.end.call, process.timezone)


def _problem(definitions: Definitions, cycle: list[Node], index: int, wait: SelfWait | None) -> Problem:
    process = definitions.processes[cycle[1][1]]
    clusters = {node[2] for node in cycle}
    names = [name if len(clusters) == 1 else f"{name}@{where}" for _, name, where in cycle]
    text = f"{' -> '.join(names)}" + (f" (on cluster {cycle[0][2]!r})" if len(clusters) == 1 else "")
    why = f"there are {_MOST} cycles or more, too many to check"
    if wait is not None:
        needs = "itself" if wait.needs == wait.nominal else f"its later instance {format_instant(wait.needs)}"
        why = f"{process.entity.name} {format_instant(wait.nominal)} would wait for {needs}; read earlier ones only"
    return process.problem(("inputs", index, "feed"), f"dependency cycle: {text}: {why}")


def _entities(definitions: Definitions) -> tuple[list[Process], list[Feed]]:
    processes = [process.entity for process in definitions.processes.values()]
    return processes, [feed.entity for feed in definitions.feeds.values()]


_COLUMNS_ARE_KNOWN = ("text", "binaryFile")


def check_own_outputs(definitions: Definitions) -> Iterator[Problem]:
    """Orders in which instances wait for ever, and first instances that would find no columns."""
    for process in definitions.processes.values():
        own = own_feeds(process.entity.inputs, process.entity.outputs)
        for index, declared in enumerate(process.entity.inputs):
            feed = definitions.feeds.get(declared.feed)
            if declared.feed in own and feed is not None:
                if not declared.optional:
                    yield from _order(process, declared)
                if _starts_without_columns(process.entity, declared, feed.entity):
                    rule = (
                        f"feed {declared.feed!r} has no instance for the first run, and an empty input has no columns"
                    )
                    yield process.warning(("inputs", index, "feed"), f"{rule}: declare `schema:` in the feed")


def _order(process: Declared[Process], declared: Input) -> Iterator[Problem]:
    why = f"instances wait for earlier ones of their own (input {declared.name!r})"
    if process.entity.order == "LAST_ONLY":
        yield process.problem(("order",), f"LAST_ONLY would skip what others wait for: {why}; use FIFO")
    if process.entity.order == "LIFO":
        yield process.warning(("order",), f"LIFO does not put the newest first here: {why}")


def _starts_without_columns(process: Process, declared: Input, feed: Feed) -> bool:
    knows = feed.schema_ is not None or feed.format in _COLUMNS_ARE_KNOWN or process.workflow.spark != "session"
    if knows or declared.start.call.kind is not Kind.TIME or declared.end.call.kind is not Kind.TIME:
        return False
    for entry in process.clusters:
        if feed.on(entry.name) is not None:
            first = process_timeline(process, entry.name).start
            try:
                if not input_instances(declared, feed_timeline(feed, entry.name), first, process.timezone):
                    return True
            except ExpressionError:
                continue  # the check of windows says so
    return False


def check_producers(definitions: Definitions) -> Iterator[Problem]:
    """Feeds that two processes, imports, replications or roll-ups make on the same cluster."""
    taken: dict[tuple[str, str], tuple[Declared[Process], int]] = {}
    for process in definitions.processes.values():
        yield from _written_twice(process)
        for index, output in enumerate(process.entity.outputs):
            feed = definitions.feeds.get(output.feed)
            for entry in process.entity.clusters:
                on_cluster = feed.entity.on(entry.name) if feed else None
                other, other_index = taken.setdefault((output.feed, entry.name), (process, index))
                if other is not process:
                    where = other.document.position(("outputs", other_index, "feed"))
                    rule = f"is already produced by process {other.entity.name!r} at {where}"
                elif on_cluster is not None and on_cluster.type == "target":
                    rule = "is filled by replication (type: target), so no process can produce it there"
                elif on_cluster is not None and on_cluster.import_:
                    source = on_cluster.import_.source.name
                    rule = f"is imported from datasource {source!r}, so no process can produce it there"
                else:
                    continue
                message = f"feed {output.feed!r} on cluster {entry.name!r} {rule}"
                yield process.problem(("outputs", index, "feed"), message)
    for feed in definitions.feeds.values():
        yield from _imported_as_well(feed)


def _imported_as_well(feed: Declared[Feed]) -> Iterator[Problem]:
    for path, transfer in transfers_of(feed):
        if isinstance(transfer, Import):
            if feed.entity.clusters[int(path[1])].type == "target":
                yield feed.problem(path, "replication makes the instances here (type: target): leave one of them out")
            if feed.entity.rollup:
                yield feed.problem(path, "a roll-up is made of its members: import those")


def _written_twice(process: Declared[Process]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for index, output in enumerate(process.entity.outputs):
        if output.feed in first:
            message = f"feed {output.feed!r} is already written by output {first[output.feed]!r} of this process"
            yield process.problem(("outputs", index, "feed"), message)
        first.setdefault(output.feed, output.name)
