"""Processes that compete for being the active daemon, and count while they are: each number must come once."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from falcon_assets.history.platform import active_daemon
from falcon_assets.history.platform.active_daemon import ActiveDaemon, of_active_daemon, work_arguments

SILENT_SECONDS = 3


def act(url: str, log: str) -> None:
    """Counts once it is the active daemon: it reads the last number and writes the next one, as two statements."""
    active_daemon.SILENT_SECONDS = SILENT_SECONDS
    active_daemon._ASK_SECONDS = 0.3

    def say(line: str) -> None:
        with Path(log).open("a") as file:
            file.write(f"{os.getpid()}: {line}\n")

    ActiveDaemon(url, say).begin()
    # As Dagster's storage has one in the process of the daemon.
    of_work: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_pre_ping": True, "connect_args": work_arguments()}
    engine = of_active_daemon(create_engine(url, **of_work))
    while True:
        with suppress(DBAPIError):
            with engine.connect() as connection:
                last = connection.execute(text("SELECT coalesce(max(number), 0) FROM counted")).scalar_one()
            time.sleep(random.uniform(0, 0.02))
            with engine.connect() as connection:
                mine = {"number": last + 1, "process": os.getpid()}
                connection.execute(text("INSERT INTO counted VALUES (:number, :process)"), mine)


@dataclass(frozen=True)
class Acting:
    process: ForkServerProcess
    log: Path

    @classmethod
    def start(cls, url: str, log: Path) -> Acting:
        """Forked from a server that has the imports done, so that it comes quickly."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        log.touch()
        process = context.Process(target=act, args=(url, str(log)), daemon=True)
        process.start()
        return cls(process, log)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def said(self) -> list[str]:
        """What it said so far."""
        mine = f"{self.pid}: "
        return [line.removeprefix(mine) for line in self.log.read_text().splitlines() if line.startswith(mine)]
