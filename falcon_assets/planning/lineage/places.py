"""What versions were made from that is of no feed: nodes beside those of versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from falcon_assets.planning.lineage.graph import Version


@dataclass(frozen=True)
class PlaceRead:
    """A version was made from what lies at a place, which no process declares.

    Attributes:
        place: A folder, a file or a table, as Spark names it.
        version: It.
    """

    place: str
    version: Version

    @property
    def id(self) -> str:
        """Of the place; unlike that of any version."""
        return f"place:{self.place}"

    def as_node(self) -> dict[str, Any]:
        """The place in JSON."""
        return {"id": self.id, "kind": "place", "name": self.place}

    def as_edge(self) -> dict[str, Any]:
        """The edge in JSON."""
        one = self.version
        made = {"process": one.process, "run": one.run_id, "definition": one.definition}
        return {"from": self.id, "to": one.id, **made, "declared": False}


def places_read(versions: Iterable[Version]) -> list[PlaceRead]:
    """All of them that versions were made from, in the order of their names."""
    found = (PlaceRead(place, one) for one in versions for place in one.places)
    return sorted(found, key=lambda one: (one.place, one.version.id))
