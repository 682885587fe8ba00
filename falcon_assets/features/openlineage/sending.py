"""Transport of events to a receiver by HTTP."""

from __future__ import annotations

import requests
from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

_SECONDS = 10.0
_REFUSED = frozenset({400, 413, 422})
"""Answers of a receiver that will never take an event: later events do not wait for it."""


class NotSentError(Exception):
    """An event was not delivered; a later try may succeed."""


class LineageReceiver:
    """A system that collects lineage; its error messages contain no secrets."""

    def __init__(self, url: str, api_key: str | None) -> None:
        auth = ApiKeyTokenProvider({"api_key": api_key}) if api_key else TokenProvider({})
        # What fails is tried again from outside, where others do not wait for it.
        self._transport = HttpTransport(HttpConfig(f"{url}/", timeout=_SECONDS, auth=auth, retry={"total": 0}))

    def send(self, event: RunEvent) -> bool:
        """Sends an event; returns False where the receiver will never take it.

        Raises:
            NotSentError: it was not delivered.
        """
        try:
            answer = self._transport.emit(event)
        except requests.HTTPError as error:
            code = error.response.status_code if error.response is not None else 0
            if code in _REFUSED:
                return False
            raise NotSentError(f"the receiver answered {code}") from None
        except requests.Timeout:
            raise NotSentError(f"the receiver did not answer within {_SECONDS:g} s") from None
        except (requests.RequestException, UnicodeError) as error:  # their texts quote what was sent
            raise NotSentError(f"the receiver cannot be reached: {type(error).__name__}") from None
        if answer.history:
            raise NotSentError("the receiver redirects elsewhere: this is not its address")
        return True

    def close(self) -> None:
        self._transport.close()
