"""Asks several colos at once, each for no longer than its time-out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTimeError
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from falcon_assets.errors import FalconError
from falcon_assets.features.colos.declaration import Colo
from falcon_assets.model.access import Principal
from falcon_assets.operations.operation import Operation

T = TypeVar("T")
_AT_ONCE = 8
"""Requests to one colo: one that does not answer takes no thread from the others."""


class ColoAwayError(FalconError):
    """The colo cannot be reached, or takes no requests: nothing was done there."""


class UnansweredError(FalconError):
    """The colo was asked, and did not answer: it may have been done, or be done yet."""


class Performer(Protocol):
    """Has a colo perform an operation for a user.

    Raises ColoAwayError, UnansweredError, UnknownEntityError, and other errors of falcon: the colo refuses.
    """

    def __call__(self, colo: Colo, principal: Principal | None, asked: Operation, *, only_data: bool = False) -> Any:
        """``only_data``: what it returns has but the data of the result, which is read faster."""


@dataclass
class AskedColos:
    """The colos, with a few threads for each.

    Attributes:
        perform: How they are asked.
    """

    colos: Mapping[str, Colo]
    perform: Performer

    @cached_property
    def _threads(self) -> Mapping[str, ThreadPoolExecutor]:
        return {name: ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"colo-{name}") for name in self.colos}

    def close(self) -> None:
        """Waits for nothing: what is under way ends with its time-out."""
        for one in self._threads.values():
            one.shutdown(wait=False, cancel_futures=True)

    def each(self, work: Mapping[str, Callable[[], T]]) -> Mapping[str, T | FalconError]:
        """Does the work of each colo, all at once; what raised an error, or was not done in time, has that instead."""
        began = time.monotonic()
        under_way = {colo: self._threads[colo].submit(one) for colo, one in work.items()}
        return {colo: self._result(colo, future, began) for colo, future in under_way.items()}

    def _result(self, colo: str, future: Future[Any], began: float) -> Any:
        seconds = self.colos[colo].timeout
        try:
            return future.result(max(0.0, began + seconds - time.monotonic()))
        except NotInTimeError:
            if future.cancel():
                return ColoAwayError("it has too many requests without an answer")
            return UnansweredError(f"it did not answer within {seconds:g} seconds")
        except FalconError as error:
            return error
