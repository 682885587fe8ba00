"""Processes that come, use the embedded PostgreSQL of a home, and go; some are killed, and so is the server."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from falcon_assets.history.platform.postgres import database_url
from falcon_assets.history.platform.reconnecting import wait_out_restarts
from falcon_assets.settings import load_settings

_STOPPED = re.compile(r"received (?:fast|smart|immediate) shutdown request")
_LONGEST_LIFE = 2.0
_PAUSE = 0.1
_PATIENCE = 180.0


def shutdowns(home: Path) -> int:
    """How many times the server says in its log that somebody shut it down."""
    return len(_STOPPED.findall((home / "postgres/log").read_text(errors="replace")))


def servers_of(home: Path) -> list[psutil.Process]:
    """The servers on the data of that home, without the processes that they have started."""
    data = str((home / "postgres").resolve())
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if data in process.cmdline() and process.name() == "postgres":
                found.append(process)
    return found


def use(home: str, told: Connection) -> None:
    """Asks the database again and again until it is told to go; starts it again where it was killed."""
    os.environ["FALCON_HOME"] = home
    os.environ.pop("FALCON_DATABASE_URL", None)
    try:
        engine = wait_out_restarts(create_engine(database_url(load_settings()), poolclass=NullPool))
        told.send("")
        while not told.poll(_PAUSE):
            with suppress(OperationalError), engine.connect() as connection:  # a statement may be under way at a kill
                connection.execute(text("SELECT 1"))
    except Exception:
        told.send(traceback.format_exc())
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()  # as the processes of runs do


@dataclass(frozen=True)
class User:
    """One such process; forked from a server that has imported what it takes, so that it comes quickly."""

    process: ForkServerProcess
    said: Connection

    @classmethod
    def comes(cls, home: Path) -> User:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        said, told = context.Pipe()
        process = context.Process(target=use, args=(str(home), told))
        process.start()
        told.close()
        return cls(process, said)

    def is_told(self) -> str:
        """What it says first: nothing when the database has answered, else why not."""
        return str(self.said.recv())

    def goes(self, way: str = "goes") -> str:
        """Lets it end in that way: in order, or by a signal; what it said of failures."""
        if way == "goes":
            with suppress(OSError):
                self.said.send("go")
        else:
            with suppress(ProcessLookupError):  # it has failed, and says so
                os.kill(self.process.pid or 0, getattr(signal, way))
        self.process.join(_PATIENCE)
        said = []
        with suppress(EOFError, OSError):
            while self.said.poll():
                said.append(self.said.recv())
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            said.append("it does not end")
        self.said.close()
        return "".join(said)


@contextmanager
def keeper(home: Path) -> Iterator[User]:
    """One that uses it during the whole block, and goes in order at the end, without having failed."""
    user = User.comes(home)
    try:
        assert user.is_told() == ""
        yield user
    finally:
        assert user.goes() == ""


@dataclass
class Crowd:
    """So many of them at once, each for a short time, until ``seconds`` are over.

    Attributes:
        home: Their FALCON_HOME.
        workers: How many there are at any time.
        seconds: For how long others take the place of those who go.
        dice: Who lives for how long and how they end.
        server_lives: So many seconds after its start the server is killed, too, on average; None: it is not.
        ended: How many ended in which way.
        failures: What those said who failed.
    """

    home: Path
    workers: int
    seconds: float
    dice: random.Random
    server_lives: float | None = None
    ended: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def play(self) -> None:
        """Returns when the last one has gone."""
        over = time.monotonic() + self.seconds
        kill = self._next_kill()
        there: list[tuple[User, float, str]] = []
        while there or time.monotonic() < over:
            now = time.monotonic()
            while len(there) < self.workers and now < over:
                way = self.dice.choices(("goes", "SIGTERM", "SIGKILL"), (3, 1, 3))[0]
                there.append((User.comes(self.home), now + self.dice.uniform(0, _LONGEST_LIFE), way))
            for one in [one for one in there if now >= one[1]]:
                self.failures += filter(None, [one[0].goes(one[2])])
                self.ended[one[2]] += 1
                there.remove(one)
            if kill <= now < over:
                for server in servers_of(self.home):
                    with suppress(psutil.NoSuchProcess):
                        server.kill()
                self.ended["killed servers"] += 1
                kill = self._next_kill()
            time.sleep(_PAUSE / 10)

    def _next_kill(self) -> float:
        if self.server_lives is None:
            return float("inf")
        return time.monotonic() + self.dice.uniform(0, 2 * self.server_lives)
