"""Operations on completeness: reports of what was sent and what came, and watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field, model_validator

from falcon_assets.errors import QueryError, UnknownEntityError
from falcon_assets.features.completeness.records import ReportedPart
from falcon_assets.features.completeness.reporting import record_parts
from falcon_assets.features.completeness.store import KnownShare, known_shares
from falcon_assets.features.completeness.watermark import Watermark, watermarks
from falcon_assets.history.events.record import LARGEST, storable
from falcon_assets.model.access import Role
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant
from falcon_assets.operations.acting import acting, require_change, require_read
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.writers import not_from_outside


@dataclass(frozen=True)
class ReportedShare(Result):
    """The share of an instance after a report; numbers that nobody has reported are None, and so is ``percent``."""

    feed: str
    cluster: str
    instance: Instant
    expected: int | None
    records: int | None
    percent: float | None
    at_least: float


class ReportParts(Operation):
    """Report how many records of an instance of FEED were sent, or have come.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. FEED declares its completeness. A part that is reported again replaces what
    was reported of it before, so a report may be repeated. Only who may change FEED can report.
    """

    command = "feed report"
    role = Role.LAUNCHER
    of_owners = True
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description="Cluster: needed if the feed lands on several.")
    source: str = Field("", description="Name of the program or machine that sends; omit it if there is only one.")
    part: str = Field("", description="Name of the part; without it, the numbers are those of the source as a whole.")
    records: int | None = Field(None, ge=0, le=LARGEST, description="Number of records that came.")
    expected: int | None = Field(None, ge=0, le=LARGEST, description="Number of records that were sent.")
    minimum: Annotated[str | None, Given(flags=("--min",))] = Field(None, description="Least value in the part.")
    maximum: Annotated[str | None, Given(flags=("--max",))] = Field(None, description="Greatest value in the part.")
    offsets: Annotated[str | None, Given(metavar="FROM..TO")] = Field(None, description="Offsets of the part.")

    @model_validator(mode="after")
    def _says_something(self) -> ReportParts:
        if self.records is None and self.expected is None:
            raise QueryError("say how many records came (--records), or were sent (--expected)")
        return self

    def run(self, installation: Installation) -> ReportedShare:
        numbers = (self.records, self.expected, self.minimum, self.maximum, self.offsets)
        part = ReportedPart(self.source, self.part, *numbers)
        return report_parts(installation, self.feed, self.instance, [part], self.cluster)


def report_parts(
    installation: Installation, feed: str, instance: datetime, parts: Sequence[ReportedPart], cluster: str | None = None
) -> ReportedShare:
    """Records reports of an instance, all in one event, and returns its share.

    Raises:
        UnknownEntityError: there is no such feed or cluster, or it does not land there from outside.
        UnknownInstanceError: the feed has no such instance.
        QueryError: it lands on several clusters and none is named, or it declares no completeness.
        DeniedError: the user may not change the feed.
    """
    declared = installation.entities.feed(feed)
    who = acting(installation.settings)
    require_change(who, "report records of", [declared], Role.LAUNCHER)
    rule = declared.completeness
    if rule is None:
        raise QueryError(f"feed {feed!r} declares no completeness, so nobody would read the report")
    texts = [text for one in parts for text in vars(one).values() if isinstance(text, str)]
    if unfit := next((text for text in texts if storable(text) != text), None):
        raise QueryError(f"{unfit.encode(errors='backslashreplace').decode()!r} is no text that PostgreSQL can store")
    there = _landing_cluster(installation, declared, cluster)
    feed_timeline(declared, there).require(instance, f"feed {feed!r} on cluster {there!r}")
    ledger = installation.ledger
    record_parts(ledger, declared, there, instance, parts, installation.settings.now(), who.name)
    ledger.catch_up()
    key = (there, feed, instance)
    with ledger.engine.connect() as connection:
        share = known_shares(connection, [key]).get(key, KnownShare())
    percent = None if share.percent is None else float(share.percent)
    return ReportedShare(feed, there, instance, share.expected, share.records, percent, float(rule.at_least))


def _landing_cluster(installation: Installation, feed: Feed, cluster: str | None) -> str:
    entities = installation.entities
    asked = [entities.cluster(cluster)] if cluster else [one for one in entities.clusters.values() if feed.on(one.name)]
    refused = dict[str, str | None]()
    for one in asked:
        feed_timeline(feed, one.name)  # raises where it is not on that cluster
        refused[one.name] = not_from_outside(feed, one.name, entities.producers(feed.name, one.name))
    found = [name for name, why in refused.items() if why is None]
    if not found:
        nowhere = f"feed {feed.name!r} is on none of the clusters of this code location"
        raise UnknownEntityError("\n".join(why for why in refused.values() if why) or nowhere)
    if len(found) > 1:
        raise QueryError(f"feed {feed.name!r} lands on several clusters: add --cluster {' or '.join(sorted(found))}")
    return found[0]


@dataclass(frozen=True)
class Watermarks(Result):
    items: tuple[Watermark, ...]


class ShowWatermark(Operation):
    """Show up to which time FEED is complete, for each cluster.

    All instances before that nominal time are there, or were until retention took them; the instance of that time is
    not, or is yet to come.
    """

    command = "feed watermark"
    feed: Annotated[str, Given("FEED")]
    cluster: str | None = Field(None, description="Only on this cluster.")

    def run(self, installation: Installation) -> Watermarks:
        entities, now = installation.entities, installation.settings.now()
        feed = entities.feed(self.feed)
        require_read(acting(installation.settings), [feed])
        if self.cluster:
            feed_timeline(feed, entities.cluster(self.cluster).name)
        with installation.tables_caught_up().begin() as connection:
            found = watermarks(connection, entities, feed, now)
        return Watermarks(tuple(one for one in found if self.cluster in (None, one.cluster)))
