"""What is known about single instances, by their keys: a few statements, however many they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ARRAY, Connection, DateTime, TableValuedAlias, Text, and_, func, literal, select

from falcon_assets.ledger.fold import record_of
from falcon_assets.ledger.reduce import FeedKey, ProcessKey
from falcon_assets.ledger.reruns import requests_at
from falcon_assets.ledger.tables import FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.model.process import Retry
from falcon_assets.planning.instances.instance_record import FeedState, InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.rules.retries import is_alive, settled, waits_for_rerun


@dataclass(frozen=True)
class KnownFeedInstance:
    """A feed instance that is available, or was until it was evicted."""

    state: FeedState
    evicted_at: datetime | None


@dataclass(frozen=True)
class KnownInstance:
    """An instance of a process or a replication; ``request``: to run it again, served or not."""

    record: InstanceRecord
    request: RerunRequest | None

    @property
    def waiting(self) -> RerunRequest | None:
        """The request for which it is to run again and has not been given a run yet."""
        return self.request if self.request is not None and waits_for_rerun(self.request, self.record) else None

    def is_over(self, retry: Retry) -> bool:
        """Whether it stays as it is, unless somebody does something."""
        if self.request is not None and is_alive(self.request, self.record, retry):
            return False
        return settled(self.record, retry)


def known_feed_instances(connection: Connection, keys: Collection[FeedKey]) -> dict[FeedKey, KnownFeedInstance]:
    """Those of the feed instances that landed, or were made, at any time."""
    if not keys:
        return {}
    asked, table = _asked(keys, "cluster", "feed", "instance"), FEED_INSTANCES.c
    own = and_(*(table[name] == asked.c[name] for name in ("cluster", "feed", "instance")))
    statement = select(table.cluster, table.feed, table.instance, table.state, table.evicted_at)
    rows = connection.execute(statement.join_from(asked, FEED_INSTANCES, own))
    return {
        (row.cluster, row.feed, row.instance): KnownFeedInstance(FeedState(row.state), row.evicted_at) for row in rows
    }


def known_instances(connection: Connection, keys: Collection[ProcessKey]) -> dict[ProcessKey, KnownInstance]:
    """Each of the instances; one that no run was given is WAITING."""
    if not keys:
        return {}
    names = ("process", "cluster", "nominal")
    asked = _asked(keys, *names)
    own = and_(*(PROCESS_INSTANCES.c[name] == asked.c[name] for name in names))
    rows = connection.execute(select(PROCESS_INSTANCES).join_from(asked, PROCESS_INSTANCES, own))
    records = {(row.process, row.cluster, row.nominal): record_of(row) for row in rows}
    requests = requests_at(connection, keys)
    return {
        key: KnownInstance(records.get(key) or InstanceRecord(key[2], InstanceState.WAITING), requests.get(key))
        for key in keys
    }


def _asked(keys: Collection[tuple[str, str, datetime]], *names: str) -> TableValuedAlias:
    """Rows of arrays: VALUES would be compiled anew for each number of them."""
    first, second, instants = zip(*sorted(keys), strict=True)
    texts = [literal(list(column), ARRAY(Text)) for column in (first, second)]
    arrays = (*texts, literal(list(instants), ARRAY(DateTime(timezone=True))))
    return func.unnest(*arrays).table_valued(*names).render_derived(name="asked")
