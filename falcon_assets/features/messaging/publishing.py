"""Publication of the transitions on a cluster to its broker, and its checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import Connection

from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem
from falcon_assets.features.messaging.broker import NotPublishedError, broker_of, missing_extra, scheme_of
from falcon_assets.features.messaging.cloud_events import cloud_event
from falcon_assets.history.events.instance_event import InstanceEvent, Notice, Sent
from falcon_assets.history.folding.subscriptions import whole
from falcon_assets.model.cluster import Cluster, MessagingInterface
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process

RECEIVER = "messaging of "
"""In front of the cluster: the name of its broker as a receiver."""


class ClusterPublishing:
    """Publishes as an :class:`EventReceiver`; repeated events have the same ids."""

    at_once = 200
    pause = timedelta()
    never_gives_up = True

    def __init__(self, cluster: Cluster, messaging: MessagingInterface, environ: Mapping[str, str]) -> None:
        self._messaging, self._environ, self._cluster = messaging, environ, cluster.name
        self.name, self._events = f"{RECEIVER}{cluster.name}", frozenset(messaging.on or EventKind)
        self.wanted = {whole(cluster.name): self._events}

    def names_for(self, event: InstanceEvent, entity: Feed | Process | Cluster, _is_retried: bool) -> Sequence[str]:
        is_here = event.cluster == self._cluster and event.event in self._events
        return (self.name,) if is_here and entity.name in (self._messaging.entities or (entity.name,)) else ()

    def send(self, _connection: Connection, _key: str, notices: Sequence[Notice]) -> Sent:
        sent = Sent()
        try:
            broker = broker_of(self._messaging, self._environ)
            for event, is_taken in broker.publish([cloud_event(one) for one in notices]):
                (sent.taken if is_taken else sent.refused).append(event.notice)
        except NotPublishedError as error:
            return replace(sent, problem=str(error))
        return sent


_WHERE = ("interfaces", "messaging")


def check_messaging(definitions: Definitions) -> Iterator[Problem]:
    """Clients that are not installed here, and entities that do not exist."""
    known = [*definitions.feeds, *definitions.processes]
    for cluster in definitions.clusters.values():
        messaging = cluster.entity.interfaces.messaging
        if messaging is None:
            continue
        if extra := missing_extra(messaging):
            what = f"events cannot be published to {scheme_of(messaging)}:// from here"
            yield cluster.warning((*_WHERE, "endpoint"), f"{what}: pip install 'falcon-assets[{extra}]'")
        for index, name in enumerate(messaging.entities):
            is_unparsed = any(definitions.is_unparsed(kind, name) for kind in ("feed", "process"))
            if name not in known and not is_unparsed:
                what = f"there is no feed or process {name!r}{nearest(name, known)}"
                yield cluster.problem((*_WHERE, "entities", index), what)
