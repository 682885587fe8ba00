"""Publication by HTTP: a request for each event (source: CloudEvents' HTTP binding, structured mode)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import requests

from falcon_assets.features.messaging.broker import SECONDS, NotPublishedError
from falcon_assets.features.messaging.cloud_events import CONTENT_TYPE, CloudEvent
from falcon_assets.model.cluster import MessagingInterface

_REFUSED = frozenset({400, 413, 422})
"""Answers of a service that will never take an event: later events do not wait for it."""


@dataclass(frozen=True)
class HttpBroker:
    url: str
    headers: Mapping[str, str]

    def publish(self, events: Sequence[CloudEvent]) -> Iterator[tuple[CloudEvent, bool]]:
        with requests.Session() as session:
            for event in events:
                yield event, self._ask(session, "POST", event.body) not in _REFUSED

    def probe(self) -> None:
        with requests.Session() as session:
            self._ask(session, "OPTIONS", None, accepted=range(200, 500))

    def _ask(
        self, session: requests.Session, method: str, body: bytes | None, accepted: Sequence[int] = range(200, 300)
    ) -> int:
        headers = {**self.headers, "Content-Type": CONTENT_TYPE}
        try:
            answer = session.request(
                method, self.url, data=body, headers=headers, timeout=SECONDS, allow_redirects=False
            )
        except requests.Timeout:
            raise NotPublishedError(f"it did not answer within {SECONDS:g} s") from None
        except (requests.RequestException, UnicodeError) as error:  # their texts quote what was sent
            raise NotPublishedError(f"it cannot be reached: {type(error).__name__}") from None
        if answer.status_code in (401, 403):
            raise NotPublishedError(f"it refuses access ({answer.status_code})")
        if answer.status_code not in accepted and answer.status_code not in _REFUSED:
            raise NotPublishedError(f"it answered {answer.status_code}")
        return answer.status_code


def broker(messaging: MessagingInterface, options: Mapping[str, str]) -> HttpBroker:
    return HttpBroker(messaging.endpoint, options)
