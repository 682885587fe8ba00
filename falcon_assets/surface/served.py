"""The installation that a server keeps open, for requests of many users at once.

Operations are synchronous, so each runs in a thread of its own, on an :class:`Installation` of its own: one change may
forget the definitions while others still read the former ones. What takes long to open is shared.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.catalog.watched_definitions import DefinitionsState, definitions_state
from falcon_assets.errors import FalconError
from falcon_assets.model.access import Principal
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.operation import Operation
from falcon_assets.operations.request_origin import Way
from falcon_assets.settings import Settings

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from sqlalchemy import Engine

    from falcon_assets.history.platform.open_ledger import Ledger

THREADS = 8
WAITING = 64
SECONDS = 60.0
T = TypeVar("T")


class BusyError(FalconError):
    """More requests are waiting than the server lets wait: it was not begun, and may be sent again."""


class TimedOutError(FalconError):
    """The operation takes longer than the server waits; a change may have been made, or be made yet."""


@dataclass
class ServedInstallation:
    """An open installation; made by :func:`open_served`.

    Attributes:
        seconds: How long a request waits for its result.
        performer: As :attr:`.Installation.performer` of each request.
    """

    _shared: Installation
    _threads: ThreadPoolExecutor
    _most: int
    seconds: float
    performer: Callable[[Installation, Operation], Any] | None = None

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._definitions: tuple[DefinitionsState, EntityStore, EntityStore] | None = None
        self._under_way = 0

    async def perform(self, principal: Principal, way: Way, asked: Operation) -> Any:
        """Performs an operation for a user, with the definitions of this moment.

        Raises:
            BusyError: too many are waiting.
            TimedOutError: it was not finished in time.
            FalconError: as the operation; DeniedError where the user may not request it.
        """
        return await self.call(lambda installation: perform_for(installation, principal, way, asked))

    async def call(self, function: Callable[[Installation], T], seconds: float | None = None) -> T:
        """The result of a function of the installation, computed in a thread; raises as :meth:`perform`."""
        if self._under_way >= self._most:
            raise BusyError(f"{self._under_way} requests are under way: try again in a moment")
        self._under_way += 1
        future = self._threads.submit(self._run, function)
        future.add_done_callback(self._ended(asyncio.get_running_loop()))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds or self.seconds)
        except TimeoutError:
            if future.cancel():
                raise BusyError("no thread became free in time: try again in a moment") from None
            raise TimedOutError(f"it takes longer than {seconds or self.seconds:g} seconds") from None

    def _ended(self, loop: asyncio.AbstractEventLoop) -> Callable[[object], None]:
        """A request counts until its thread is free, also if nobody waits for it any longer."""

        def end() -> None:
            self._under_way -= 1

        def ended(_: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(end)

        return ended

    def _run(self, function: Callable[[Installation], T]) -> T:
        with self.opened() as installation:
            return function(installation)

    @contextmanager
    def opened(self) -> Iterator[Installation]:
        """The installation for what is done in the present thread, with the definitions of this moment."""
        with ExitStack() as opened:
            yield _OfRequest(self, self._shared.settings, opened)

    def once(self, opening: Callable[[Installation], T]) -> T:
        """What is opened once for all, by one thread."""
        with self._lock:
            return opening(self._shared)

    def definitions(self) -> tuple[EntityStore, EntityStore]:
        """All entities, and those of the colo, as they are in the files now; raises as those of an installation."""
        settings = self._shared.settings
        with self._lock:
            state = definitions_state(settings.entity_defs)
            if self._definitions is None or self._definitions[0] != state:
                self._definitions = None
                found = load_entities(settings.entity_defs, home=settings.home)
                self._definitions = state, found, found.in_colo(settings.colo)
            return self._definitions[1:]


class _OfRequest(Installation):
    """The installation as one request sees it."""

    def __init__(self, served: ServedInstallation, settings: Settings, opened: ExitStack) -> None:
        super().__init__(settings, opened)
        self.__dict__["_served"] = served

    @property
    def _of_all(self) -> ServedInstallation:
        served: ServedInstallation = self.__dict__["_served"]
        return served

    @property
    def performer(self) -> Callable[[Installation, Operation], Any] | None:
        return self._of_all.performer

    @cached_property
    def all_entities(self) -> EntityStore:
        return self._of_all.definitions()[0]

    @cached_property
    def entities(self) -> EntityStore:
        return self._of_all.definitions()[1]

    @cached_property
    def instance(self) -> DagsterInstance:
        return self._of_all.once(lambda shared: shared.instance)

    @cached_property
    def ledger(self) -> Ledger:
        return self._of_all.once(lambda shared: shared.ledger)

    @cached_property
    def tables(self) -> Engine:
        return self._of_all.once(lambda shared: shared.tables)

    @cached_property
    def database(self) -> Engine:
        return self.tables  # the other one has few connections: threads would wait for each other


@contextmanager
def open_served(
    settings: Settings | None = None,
    *,
    threads: int = THREADS,
    waiting: int = WAITING,
    seconds: float = SECONDS,
) -> Iterator[ServedInstallation]:
    """Opens the installation of a server, and closes it when its operations have ended.

    Args:
        settings: None: as in the environment.
        threads: How many operations run at once.
        waiting: How many may wait for a thread.
        seconds: How long a request waits for its result.

    Raises:
        SettingsError: a variable of the environment is malformed.
    """
    with open_installation(settings) as shared:
        _ = shared.settings
        pool = ThreadPoolExecutor(threads, thread_name_prefix="falcon")
        try:
            yield ServedInstallation(shared, pool, threads + waiting, seconds)
        finally:
            pool.shutdown(cancel_futures=True)
