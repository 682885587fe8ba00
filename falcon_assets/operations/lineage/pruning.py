"""What data can go without losing the ability to make some versions again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from falcon_assets.errors import UsageError
from falcon_assets.ledger.entities.workflow_contents import without_files
from falcon_assets.ledger.lineage.graph import existing_versions, versions_of_numbers
from falcon_assets.ledger.lineage.lifecycle import critical_versions
from falcon_assets.ledger.lineage.protection import all_protected, edges_above
from falcon_assets.model.access import may_read
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.lineage.subject import VersionQuery, find_version
from falcon_assets.planning.lineage.graph import Version
from falcon_assets.planning.lineage.pruning import needed_to_make


@dataclass(frozen=True)
class PrunePlan:
    """What can go, and what has to stay; a plan only.

    Attributes:
        wanted: The versions that are to be made again.
        impossible: Those of them that cannot be made again as it is.
        needed: What has to stay for that.
        protected: What stays for critical versions, itself or what was made from it.
        goes: What can go, by feed, instance and number.
        hidden: How many others can go, of feeds that the user may not read.
    """

    wanted: Sequence[Version]
    impossible: Sequence[Version]
    needed: Sequence[Version]
    protected: Sequence[Version]
    goes: Sequence[Version]
    hidden: int

    @property
    def bytes(self) -> int:
        """How much space that frees, as far as sizes are recorded."""
        return sum(one.bytes or 0 for one in self.goes)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        names = ("wanted", "impossible", "needed", "protected", "goes")
        listed = {name: [{**one.as_node(), "bytes": one.bytes} for one in getattr(self, name)] for name in names}
        return {**listed, "bytes": self.bytes, "hidden": self.hidden}


def prune_plan(installation: Installation, queries: Sequence[VersionQuery] = ()) -> PrunePlan:
    """What data can go without losing the ability to make versions again; changes nothing.

    Critical versions and what they were made from never go. A version of which it is not recorded how it was made, or
    whose workflow was not kept, cannot be made again.

    Args:
        installation: Where.
        queries: The versions that are to be made again; none: all that are critical.

    Raises:
        UsageError: none is given, and none is critical.
        UnknownEntityError: there is no such feed, or it is not there, or on several clusters and none is named.
        UnknownInstanceError: no such version is recorded.
        DeniedError: the user may not read a feed.
    """
    who, entities = acting(installation.settings), installation.all_entities
    with installation.tables_caught_up().connect() as connection:
        asked = {find_version(installation, connection, one).number for one in queries}
        wanted = asked or set(critical_versions(connection, entities.critical))
        if not wanted:
            raise UsageError("no version is critical: name the versions that are to be made again")
        edges = edges_above(connection, wanted)
        of_edges = {number for edge in edges for number in edge} | wanted
        known = {one.number: one for one in versions_of_numbers(connection, of_edges)}
        lost = without_files(connection)
        there = {one.number: one for one in existing_versions(connection)}
        protected = all_protected(connection, entities.critical).keys() & there.keys()
    makeable = {one.number for one in known.values() if one.process and one.definition}
    makeable -= {one.number for one in known.values() if (one.process, one.definition) in lost}
    staying = protected | (wanted & there.keys())
    needed = needed_to_make(wanted, edges, makeable, there, staying)
    goes = [one for number, one in there.items() if number not in staying | needed.stays]
    seen = [one for one in goes if one.feed not in entities.feeds or may_read(entities.feeds[one.feed].acl, who)]
    return PrunePlan(
        _sorted(known[number] for number in wanted),
        _sorted(known[number] for number in needed.impossible),
        _sorted(there[number] for number in needed.stays),
        _sorted(there[number] for number in protected),
        _sorted(seen),
        len(goes) - len(seen),
    )


def _sorted(versions: Iterable[Version]) -> list[Version]:
    return sorted(versions, key=lambda one: (one.cluster, one.feed, one.instance, one.number))
