"""What a version came from, what became of it, how one came from another, and why two differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from falcon_assets.errors import UnknownInstanceError
from falcon_assets.ledger.lineage import graph_of, reached
from falcon_assets.ledger.version_columns import columns_of_plan
from falcon_assets.model.access import may_read
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.lineage.code import code_version
from falcon_assets.operations.lineage.lifecycle import VersionLifecycle, lifecycle_of
from falcon_assets.operations.lineage.subject import VersionQuery, find_version, find_versions
from falcon_assets.planning.lineage.difference import CodeVersion, Difference, difference
from falcon_assets.planning.lineage.graph import Graph, Version
from falcon_assets.planning.lineage.usage import OutputColumn


@dataclass(frozen=True)
class Lineage:
    """A version and the graph around it.

    Attributes:
        version: It.
        code: What it was made with; None: not recorded.
        lifecycle: Its lifecycle status.
        graph: What is known of it, without versions of feeds that the user may not read.
        hidden: How many those are.
        columns: Of the version, each with its type and what it was made from, without columns of feeds that the user
            may not read; None: not recorded.
    """

    version: Version
    code: CodeVersion | None
    lifecycle: VersionLifecycle
    graph: Graph
    hidden: int
    columns: Sequence[OutputColumn] | None = None

    @property
    def derived(self) -> list[Version]:
        """The other versions of the graph, the oldest first."""
        others = (one for number, one in self.graph.versions.items() if number != self.version.number)
        return sorted(others, key=lambda one: (one.seen_at or one.instance, one.number))

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        code = self.code.code if self.code else None
        columns = None if self.columns is None else [one.as_data() for one in self.columns]
        version = {**self.version.as_data(), "code": code, **self.lifecycle.as_data(), "columns": columns}
        return {**self.graph.as_data(), "version": version, "hidden": self.hidden}


@dataclass(frozen=True)
class Impact(Lineage):
    """What was made from a version, directly or not."""

    @property
    def recompute(self) -> list[tuple[str, str, datetime]]:
        """The instances that made what is there now (process or replication, cluster, nominal time), in that order."""
        made = (one for one in self.derived if one.is_present)
        return list(
            dict.fromkeys((one.process, one.cluster, one.nominal) for one in made if one.process and one.nominal)
        )

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        again = [
            {"entity": entity, "cluster": cluster, "instance": format_instant(nominal)}
            for entity, cluster, nominal in self.recompute
        ]
        return {**super().as_data(), "recompute": again}


def show_lineage(
    installation: Installation, query: VersionQuery, *, up: bool = True, down: bool = False, depth: int | None = None
) -> Lineage:
    """What the version came from and what became of it.

    Args:
        installation: Where.
        query: Which version.
        up: Whether to go to what it came from.
        down: Whether to go to what was made from it.
        depth: Over how many edges; None: all.

    Raises:
        UnknownEntityError: there is no such feed, or it is not there, or on several clusters and none is named.
        UnknownInstanceError: no such version is recorded.
        DeniedError: the user may not read the feed.
    """
    with installation.tables_caught_up().connect() as connection:
        version = find_version(installation, connection, query)
        numbers = {version.number}
        for is_wanted, direction in ((up, True), (down, False)):
            numbers |= reached(connection, version.number, up=direction, depth=depth) if is_wanted else set()
        graph, hidden = _readable(installation, connection, numbers)
        lifecycle = lifecycle_of(installation, connection, version)
        columns = _readable_columns(installation, columns_of_plan(connection, version.plan))
        return Lineage(version, code_version(connection, version), lifecycle, graph, hidden, columns)


def lineage_impact(installation: Installation, query: VersionQuery) -> Impact:
    """Everything that was made from the version; raises as :func:`show_lineage`."""
    return Impact(**vars(show_lineage(installation, query, up=False, down=True)))


def lineage_path(installation: Installation, start: VersionQuery, end: VersionQuery) -> Lineage:
    """All that lies between a version and one that was made from it, directly or not.

    Raises:
        UnknownInstanceError: as :func:`show_lineage`, which raises the others, too; or the second was not made from it.
    """
    with installation.tables_caught_up().connect() as connection:
        first, last = (find_version(installation, connection, one) for one in (start, end))
        below = reached(connection, first.number, up=False)
        if last.number not in below:
            raise UnknownInstanceError(f"{last.id} was not made from {first.id}")
        between = below & reached(connection, last.number, up=True)
        graph, hidden = _readable(installation, connection, between)
        lifecycle = lifecycle_of(installation, connection, first)
        return Lineage(first, code_version(connection, first), lifecycle, graph, hidden)


def lineage_diff(
    installation: Installation, query: VersionQuery, before: str | None = None, after: str | None = None
) -> Difference:
    """Why two versions of an instance differ.

    Args:
        installation: Where.
        query: The instance.
        before: A version of it, or its beginning; None: the one before ``after``.
        after: Likewise; None: the present one, or the last.

    Raises:
        UnknownInstanceError: as :func:`show_lineage`, which raises the others, too; or there is no other version.
    """
    with installation.tables_caught_up().connect() as connection:

        def named(version: str | None) -> Version:
            return find_version(
                installation, connection, VersionQuery(query.feed, query.instance, query.cluster, version)
            )

        new, every = named(after), find_versions(installation, connection, query)
        place = next(number for number, one in enumerate(every) if one.number == new.number)
        if before is None and not place:
            raise UnknownInstanceError(f"{new.id} has no version before it: say which two with --from and --to")
        old = named(before) if before else every[place - 1]
        inputs = [_inputs(installation, connection, one) for one in (old, new)]
        codes = [code_version(connection, one) for one in (old, new)]
    return difference((old, new), (inputs[0], inputs[1]), (codes[0], codes[1]))


def _inputs(installation: Installation, connection: Connection, version: Version) -> list[Version]:
    graph, _ = _readable(installation, connection, reached(connection, version.number, up=True, depth=1))
    return [graph.versions[edge.input] for edge in graph.edges if edge.output == version.number]


def _readable(installation: Installation, connection: Connection, numbers: Collection[int]) -> tuple[Graph, int]:
    """The graph without versions of feeds that the user may not read, and how many those are."""
    who, feeds = acting(installation.settings), installation.all_entities.feeds
    whole = graph_of(connection, numbers)
    graph = whole.only(lambda one: one.feed not in feeds or may_read(feeds[one.feed].acl, who))
    return graph, len(whole.versions) - len(graph.versions)


def _readable_columns(
    installation: Installation, columns: Sequence[OutputColumn] | None
) -> Sequence[OutputColumn] | None:
    who, feeds = acting(installation.settings), installation.all_entities.feeds
    return columns and [
        replace(one, inputs=tuple(at for at in one.inputs if at[0] not in feeds or may_read(feeds[at[0]].acl, who)))
        for one in columns
    ]
