"""Circuit breakers of the stores that collectors list, by endpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from falcon_assets.errors import StorageError
from falcon_assets.features.landing.rules import Breaker
from falcon_assets.storage.errors import is_about_path


@dataclass(frozen=True)
class Breakers:
    _by_endpoint: dict[str, Breaker] = field(default_factory=dict, init=False)

    def open_for(self, endpoint: str) -> str | None:
        """Returns why the endpoint must not be asked now, and for how long; None: it may be asked."""
        breaker, now = self._by_endpoint.get(endpoint), time.monotonic()
        if breaker is None or breaker.until is None or not breaker.is_open(now):
            return None
        return f"{endpoint} does not answer and is asked again in {breaker.until - now:.0f} s: {breaker.why}"

    @contextmanager
    def watching(self, endpoint: str) -> Iterator[None]:
        """Counts failures and answers of the endpoint in the block; a refusal for one path is an answer."""
        began = time.monotonic()
        try:
            yield
        except StorageError as error:
            if not is_about_path(error):
                before, now = self._by_endpoint.get(endpoint, Breaker()), time.monotonic()
                self._by_endpoint[endpoint] = before.failed(now, now - began, str(error))
            raise
        self._by_endpoint.pop(endpoint, None)
