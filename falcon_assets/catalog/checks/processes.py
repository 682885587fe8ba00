"""Checks of the texts of processes, of their workflow files and of their Spark settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from falcon_assets.catalog.declared import Definitions, transfers_of
from falcon_assets.catalog.workflow_files import file_problem, lib_problem, workflows
from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Position, Problem, UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import nearest
from falcon_assets.model.process import Process, ProcessCluster
from falcon_assets.model.spark_settings import is_of_application
from falcon_assets.model.template import parse_template
from falcon_assets.model.workflow import Workflow
from falcon_assets.planning.interpolate import Watermark, interpolate
from falcon_assets.planning.process_instance import BUILT_IN
from falcon_assets.planning.rollups import leaves_of, member_input
from falcon_assets.planning.workloads import ProcessWorkload


def check_queues(definitions: Definitions) -> Iterator[Problem]:
    """Queues of several pipelines, or of processes and transfers: one coordinator admits what a queue lets run."""
    first: dict[str, Process] = {}
    for process in definitions.processes.values():
        if queue := process.entity.queue:
            other = first.setdefault(queue, process.entity)
            if other.pipelines[0] != process.entity.pipelines[0]:
                where = f"pipeline {other.pipelines[0]!r} (process {other.name!r})"
                yield process.problem(("queue",), f"queue {queue!r} is used in {where}: a queue is for one pipeline")
    for feed in definitions.feeds.values():
        for path, transfer in transfers_of(feed):
            if transfer.queue in first:
                where = f"pipeline {first[transfer.queue].pipelines[0]!r} (process {first[transfer.queue].name!r})"
                message = f"queue {transfer.queue!r} is used in {where}: imports and exports need one of their own"
                yield feed.problem((*path, "queue"), message)


def check_variables(definitions: Definitions) -> Iterator[Problem]:
    """Properties, partitions of inputs and arguments with unknown variables or bad expressions."""
    for process in definitions.processes.values():
        for path, text, names in _texts(process.entity, definitions):
            try:
                parse_template(text)
            except ExpressionError as error:
                yield process.problem(path, str(error))
                continue
            for entry in process.entity.clusters:
                cluster = definitions.clusters.get(entry.name)
                watermark = _watermark(definitions, entry) if path[0] == "properties" else None
                message = _message(process.entity, cluster.entity, text, names, watermark) if cluster else None
                if message is not None:
                    yield process.problem(path, message)


def _inputs(process: Process, definitions: Definitions) -> Iterator[str]:
    """The names by which a workflow finds its inputs, and the members of those that it tells apart."""
    for one in process.inputs:
        yield one.name
        if one.members and one.members.views and one.feed in definitions.feeds:
            feeds = {name: feed.entity for name, feed in definitions.feeds.items()}
            yield from (member_input(one.name, leaf.name) for leaf in leaves_of(feeds[one.feed], feeds))


def _texts(process: Process, definitions: Definitions) -> Iterator[tuple[KeyPath, str, tuple[str, ...]]]:
    """Yields key, text and the names that the process adds to those of its cluster."""
    for key, text in process.properties.items():
        yield ("properties", key), text, ()
    own = tuple(process.properties)
    for index, declared in enumerate(process.inputs):
        if declared.partition is not None:
            yield ("inputs", index, "partition"), declared.partition, own
    feeds = (*_inputs(process, definitions), *(output.name for output in process.outputs))
    for path, workflow in workflows(process):
        for steps, text in workflow.templates():
            yield (*path, *steps), text, (*own, *feeds)


def _watermark(definitions: Definitions, entry: ProcessCluster) -> Watermark:
    def of(name: str) -> datetime:
        feed = definitions.feeds.get(name)
        if feed is None and not definitions.is_unparsed("feed", name):
            raise ExpressionError(f"watermark: unknown feed {name!r}{nearest(name, definitions.feeds)}")
        if feed is not None and feed.entity.on(entry.name) is None:
            raise ExpressionError(f"watermark: feed {name!r} is not there")
        return entry.validity.start

    return of


def _message(
    process: Process, cluster: Cluster, text: str, names: tuple[str, ...], watermark: Watermark | None
) -> str | None:
    entry = process.on(cluster.name)
    if entry is None or "${" not in text:
        return None
    values = dict.fromkeys((*cluster.variables, *names, *BUILT_IN), "")
    try:
        interpolate(text, values, entry.validity.start, process.timezone, "", watermark)
    except ExpressionError as error:
        return f"{error} on cluster {cluster.name!r}"
    return None


def check_programs(definitions: Definitions) -> Iterator[Problem]:
    """Mistakes in SQL and Python; uncertain ones are warnings. Only on request, since it parses every workflow file."""
    reported: set[Problem] = set()
    for process in definitions.processes.values():
        views = [*_inputs(process.entity, definitions)]
        parameters = _parameters(process.entity, definitions)
        for _, workflow in workflows(process.entity):
            try:
                found = list(workflow.mistakes(definitions.root, views, parameters))
            except OSError:  # another check says so
                continue
            for file, one in found:
                path = definitions.root / file
                lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
                snippet = lines[one.line - 1] if one.line <= len(lines) else ""
                position = Position(shown_path(path), one.line, one.column)
                problem = Problem(position, "", one.message, snippet, not one.is_certain, one.is_doubt)
                if problem not in reported:  # processes may share a file
                    reported.add(problem)
                    yield problem


def _parameters(process: Process, definitions: Definitions) -> set[str]:
    clusters = [definitions.clusters[one.name].entity for one in process.clusters if one.name in definitions.clusters]
    names = {*BUILT_IN, *process.properties, *(name for one in clusters for name in one.variables)}
    return {name for name in names if name.isascii() and name.isidentifier()}


def check_spark_settings(definitions: Definitions) -> Iterator[Problem]:
    """Settings that Spark reads when it starts, on processes that use a running Spark."""
    for process in definitions.processes.values():
        settings = [key for key in process.entity.properties if key.startswith("spark.")]
        for entry in process.entity.clusters if settings else ():
            cluster = definitions.clusters.get(entry.name)
            for _, workflow in workflows(process.entity) if cluster else ():
                executors = cluster.entity.all_executors if cluster else ()
                is_server = any(one.endpoint.startswith("sc://") for one in executors)
                for key in settings:
                    why = _why_not(key, workflow, entry.name, is_server=is_server)
                    if why is not None:
                        yield process.problem(("properties", key), why, at_key=True)


def _why_not(key: str, workflow: Workflow, cluster: str, *, is_server: bool) -> str | None:
    fixed = f"Spark reads {key} when it starts, and"
    where = f"declare it in the properties of the cluster {cluster!r}"
    if workflow.spark == "session":
        if not is_of_application(key):
            return None
        return f"{fixed} {workflow.engine} runs in the session of its cluster: {where}, or run a program (spark-submit)"
    if is_server and (is_of_application(key) or not key.startswith("spark.sql.")):
        return f"{fixed} a program on the Spark Connect server of cluster {cluster!r} only talks to it: set it there"
    return None


def check_places(definitions: Definitions) -> Iterator[Problem]:
    """Outputs in tables of processes whose engine writes files only."""
    for process in definitions.processes.values():
        engine = process.entity.workflow
        for index, output in enumerate(process.entity.outputs if engine.spark == "none" else ()):
            feed = definitions.feeds.get(output.feed)
            if feed and any(feed.entity.table_on(one.name) for one in process.entity.clusters):
                why = f"the engine {engine.engine} writes no tables: use an engine with Spark"
                yield process.problem(("outputs", index, "feed"), why)


def check_batches(definitions: Definitions) -> Iterator[Problem]:
    """Workflows for many instances at once that do not fit their process; warnings where it computes one by one."""
    for process in definitions.processes.values():
        entity = process.entity
        named = [*(one.feed for one in entity.inputs), *(one.feed for one in entity.outputs)]
        if any(name not in definitions.feeds for name in named):
            continue
        feeds = {name: definitions.feeds[name].entity for name in named}
        inputs = [feeds[one.feed] for one in entity.inputs]
        outputs = [feeds[one.feed] for one in entity.outputs]
        fit = True
        for path, workflow in workflows(entity):
            if workflow.asks_for_many and (why := workflow.misfit(inputs, outputs)):
                fit = False
                yield process.problem((*path, "batch"), why)
        for entry in entity.clusters if fit and entity.workflow.asks_for_many else ():
            with suppress(UnknownEntityError):  # another check says so
                if why := ProcessWorkload(entity, entry.name, feeds).why_alone(definitions.root):
                    yield process.warning(("workflow", "batch"), f"instances are computed one by one: {why}")
                    break


def check_workflows(definitions: Definitions) -> Iterator[Problem]:
    """Missing workflow files, and files outside of the root."""
    root = definitions.root.resolve()
    verdicts: dict[str, str | None] = dict.fromkeys(definitions.files_to_come)
    libs: dict[str, str | None] = dict.fromkeys(definitions.files_to_come)
    for process in definitions.processes.values():
        for path, workflow in workflows(process.entity):
            for key, file in workflow.files().items():
                if file not in verdicts:
                    verdicts[file] = file_problem(definitions.root, root, file)
                message = verdicts[file]
                if message is not None:
                    yield process.problem((*path, key), message)
            for index, lib in enumerate(workflow.lib):
                if lib not in libs:
                    libs[lib] = lib_problem(definitions.root, root, lib)
                message = libs[lib]
                if message is not None:
                    yield process.problem((*path, "lib", index), message)
