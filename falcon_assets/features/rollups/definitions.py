"""Checks of declared roll-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.workflow_files import workflows
from falcon_assets.errors import Problem
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.planning.rollups import leaves_of, member_input

_KEY = "rollup"
_OF_DATA = (
    "locations",
    "table",
    "versions",
    "availability_flag",
    "completeness",
    "schema_",
    "options",
    "partitions",
    "compact",
)
"""Keys about data that a roll-up does not have."""
_READ_ALIKE = ("format", "options", "partitions")


def check_members_read(definitions: Definitions) -> Iterator[Problem]:
    """Inputs that tell members apart where there are none, or under names that are taken."""
    feeds = {name: one.entity for name, one in definitions.feeds.items()}
    for process in definitions.processes.values():
        own = [*(one.name for one in process.entity.inputs), *(one.name for one in process.entity.outputs)]
        for index, declared in enumerate(process.entity.inputs):
            feed, members = feeds.get(declared.feed), declared.members
            if feed is None or members is None:
                continue
            where = ("inputs", index, "members")
            if feed.rollup is None:
                said = f"feed {feed.name!r} is no roll-up, so it has no members: remove it"
                yield process.problem(where, said, at_key=True)
                continue
            leaves = list(leaves_of(feed, feeds))
            names = [member_input(declared.name, one.name) for one in leaves] if members.views else []
            for taken in (name for name in names if name in own):
                yield process.problem((*where, "views"), f"the name {taken!r} is taken by another input or output")
            if members.column and any(members.column in one.partitions for one in leaves):
                said = f"{members.column!r} is a partition of the feeds that it is made of: name another column"
                yield process.problem((*where, "column"), said)
            programs = [one.engine for _, one in workflows(process.entity) if one.spark != "session"]
            if members.column and programs:
                said = f"{programs[0]} gets paths and no rows: ask for views, which are paths by member there"
                yield process.problem((*where, "column"), said)


def check_rollups(definitions: Definitions) -> Iterator[Problem]:
    """Unknown members and circles, members that are coarser or elsewhere, and keys about data of its own."""
    for feed in definitions.feeds.values():
        rollup = feed.entity.rollup
        if rollup is None:
            continue
        yield from _own_data(feed)
        known = True
        for index, name in enumerate(rollup.of):
            where = (_KEY, "of", index)
            member = definitions.feeds.get(name)
            if member is None:
                known = False
                if not definitions.is_unparsed("feed", name):
                    close = nearest(name, tuple(definitions.feeds))
                    yield feed.problem(where, f"unknown feed {name!r}{close}")
                continue
            for why in _unfit(feed.entity, member.entity):
                yield feed.problem(where, why)
        if known and (circle := _circle(definitions, feed.entity.name)):
            known = False
            yield feed.problem((_KEY, "of"), f"a roll-up cannot be made of itself: {' -> '.join(circle)}", at_key=True)
        if known:
            yield from _read_together(definitions, feed)
        for process in definitions.processes.values():
            for index, output in enumerate(process.entity.outputs):
                if output.feed == feed.entity.name:
                    said = f"feed {output.feed!r} is a roll-up, which no process writes: write its members"
                    yield process.problem(("outputs", index, "feed"), said)


def _own_data(feed: Declared[Feed]) -> Iterator[Problem]:
    rule = "a roll-up has no data of its own, its members have: remove it"
    fields = type(feed.entity).model_fields
    for name in _OF_DATA:
        if name in feed.entity.model_fields_set:
            yield feed.problem((fields[name].alias or name,), rule, at_key=True)
    if feed.entity.snapshot:
        yield feed.problem(("snapshot",), rule, at_key=True)
    for index, entry in enumerate(feed.entity.clusters):
        for name in ("locations", "table", "retention", "lifecycle", "partition"):
            if getattr(entry, name) is not None:
                yield feed.problem(("clusters", index, name), rule, at_key=True)
        if entry.type is not None:
            said = "a roll-up is not copied: its members are, and it is made of their copies on each cluster"
            yield feed.problem(("clusters", index, "type"), said)


def _unfit(feed: Feed, member: Feed) -> Iterator[str]:
    if member.snapshot:
        yield f"feed {member.name!r} is a snapshot, which has no instances of its own"
    if member.frequency.length > feed.frequency.length:
        yield f"feed {member.name!r} has a longer frequency, {member.frequency}, than {feed.frequency}"
    for entry in feed.clusters:
        if member.on(entry.name) is None:
            yield f"feed {member.name!r} is not on cluster {entry.name!r}: it is needed where the roll-up is"


def _circle(definitions: Definitions, name: str, above: Sequence[str] = ()) -> list[str] | None:
    if name in above:
        return [*above, name] if name == above[0] else None
    feed = definitions.feeds.get(name)
    for member in feed.entity.rollup.of if feed and feed.entity.rollup else ():
        if found := _circle(definitions, member, (*above, name)):
            return found
    return None


def _read_together(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    """All that it is made of is read at once, as the first of them is."""
    found = list(leaves_of(feed.entity, {name: one.entity for name, one in definitions.feeds.items()}))
    tables = [one for one in found if one.table is not None or any(entry.table for entry in one.clusters)]
    where = (_KEY, "of")
    if tables and len(found) > 1:
        said = f"feed {tables[0].name!r} is a table, which cannot be read together with other feeds"
        yield feed.problem(where, said, at_key=True)
    for one in found[1:]:
        unlike = [name for name in _READ_ALIKE if getattr(one, name) != getattr(found[0], name)]
        if unlike:
            said = f"feeds {found[0].name!r} and {one.name!r} are read together, and differ in {', '.join(unlike)}"
            yield feed.problem(where, said, at_key=True)
