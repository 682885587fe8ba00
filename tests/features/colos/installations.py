"""Whole installations on machines of their own, and a front for all of them; each fails as machines do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
import requests
import yaml

from falcon_assets.surface.rest.openapi import PREFIX
from tests.features.logins.certificates import Authority
from tests.machines import Machine, machines
from tests.other_clock import FILE, library, set_ahead
from tests.processes import CHECKOUT, FALCON, environ_with
from tests.s3_server import ENVIRON, s3_server
from tests.servers import libpq_url, new_database, url_of
from tests.waiting import wait_until

PORT = 8443
DISK = "48m"
WHO = [{"role": "editor", "users": ["ann", "prism"]}]
Key = tuple[str, str]


@dataclass
class Installation:
    """An installation on its machine: a small disk of its own, a clock, and ``falcon serve`` or a part of it.

    Attributes:
        folder: Its disk is mounted there; the log is beside it.
        database: The URL of its own.
        only: The part of ``falcon serve``; None: all.
    """

    machine: Machine
    folder: Path
    database: str
    environ: Mapping[str, str]
    only: str | None = None
    spared: list[int] = field(default_factory=list)
    serve: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"https://{self.machine.address}:{PORT}"

    @property
    def clock(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.clock")

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.log")

    def start(self) -> None:
        """Does not wait until it answers."""
        part = ["--only", self.only] if self.only else []
        command = [*self.machine.inside, FALCON, "serve", *part, "--host", self.machine.address, "--port", str(PORT)]
        with self.log.open("ab") as log:
            self.serve = subprocess.Popen(
                command, cwd=self.folder, env={**self.environ}, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """All its processes, at once."""
        self.machine.power_off(self.spared)
        if self.serve:
            self.serve.wait()

    def fill(self) -> None:
        with (self.folder / "filling").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        (self.folder / "filling").unlink()

    def set_clock(self, seconds: int) -> None:
        """By how much it is ahead from now on."""
        set_ahead(self.clock, seconds)

    def entities(self) -> dict[Key, dict[str, Any]]:
        """What is in its files."""
        files = (self.folder / "defs").rglob("*.yaml")
        found = [one for file in files for one in yaml.safe_load_all(file.read_text())]
        assert len({(one["kind"], one["name"]) for one in found}) == len(found), "each entity once"
        return {(one["kind"], one["name"]): one for one in found}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg2.connect(libpq_url(self.database)) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def statuses(self) -> dict[Key, str]:
        return {(kind, name): status for kind, name, status in self.rows(_STATUSES)}


_STATUSES = "SELECT kind, name, status FROM falcon.entity_status"


@dataclass
class Network:
    """Installations by their colos, and the front of all of them, which is asked by ``session``."""

    colos: Mapping[str, Installation]
    front: Installation
    session: requests.Session
    store: str
    """The URL of the objects of the first colo."""

    def ask(self, method: str, path: str, **how: Any) -> requests.Response:
        return self.session.request(method, f"{self.front.url}{PREFIX}{path}", timeout=90, **how)

    def answers(self, one: Installation) -> bool:
        """Whether its front does."""
        try:
            return self.session.get(f"{one.url}/healthz", timeout=2).ok
        except requests.RequestException:
            return False

    def logs(self) -> str:
        """Their ends."""
        every = [*self.colos.values(), self.front]
        return "\n".join(f"--- {one.log.stem}\n{one.log.read_text(errors='replace')[-3000:]}" for one in every)


@contextmanager
def network(whole: Sequence[str], fronts: Sequence[str], net: str, folder: Path, postgres: str) -> Iterator[Network]:
    """Starts them all.

    Args:
        whole: Colos that are whole installations; the first colo has a store of objects, too.
        fronts: Colos of which only the fronts run.
        net: As of :func:`tests.machines.machines`.
        folder: For all their files.
        postgres: The server that has a database for each; its socket is reached from all machines.
    """
    names = [*whole, *fronts, "prism"]
    with ExitStack() as held:
        places = dict(zip(names, held.enter_context(machines(len(names), net)), strict=True))
        for one in places.values():
            held.callback(one.power_off)
        authority = Authority.make(folder, "company")
        store = held.enter_context(s3_server(folder, places[names[0]].address, places[names[0]].inside))
        library(folder)
        made = {}
        for name, machine in places.items():
            url = url_of(postgres, held.enter_context(new_database(postgres, "template0")))
            place = folder / name
            place.mkdir()
            held.enter_context(_disk(place))
            only = None if name in whole else "front"
            environ = _environ(name, machine, place, url, authority, only)
            made[name] = Installation(machine, place, url, environ, only)
            made[name].set_clock(0)
        front = made.pop("prism")
        (folder / "colos.yaml").write_text(_colos(made, front.environ, authority))
        made[names[0]].spared += _processes(places[names[0]])
        session = requests.Session()
        session.trust_env = False  # authorities that the environment names would come before these
        session.cert, session.verify = authority.issue("ann"), authority.pem
        found = Network(made, front, session, store)
        for one in [*made.values(), front]:
            one.start()
            held.callback(one.kill)
        for one in [*made.values(), front]:
            wait_until(lambda one=one: found.answers(one), 600, found.logs)  # type: ignore[misc]  # of this round
        yield found


def _processes(machine: Machine) -> list[int]:
    listed = subprocess.run(["ip", "netns", "pids", machine.name], check=True, capture_output=True, text=True)
    return [int(one) for one in listed.stdout.split()]


@contextmanager
def _disk(place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _environ(
    name: str, machine: Machine, place: Path, url: str, authority: Authority, only: str | None
) -> dict[str, str]:
    (place / "defs").mkdir()
    (place / "defs" / "a.sql").write_text("SELECT * FROM rows")
    shutil.copy(CHECKOUT / "dagster.yaml", place)
    is_front = name == "prism"
    locations = [] if only else [{"python_module": {"module_name": "falcon_assets.definitions"}}]
    (place / "workspace.yaml").write_text(yaml.safe_dump({"load_from": locations}))
    crt, key = authority.issue(name, addresses=[machine.address])
    logins = {
        "url": f"https://{machine.address}:{PORT}",
        "roles": WHO,
        "certificates": {"authorities": authority.pem},
        **({} if is_front else {"proxy_users": ["prism"]}),
    }
    (place / "logins.yaml").write_text(yaml.safe_dump(logins))
    own = {"FALCON_COLOS": str(place.parent / "colos.yaml")} if is_front else {"FALCON_COLO": name}
    return environ_with(
        FALCON_HOME=str(place / "home"),
        FALCON_ENTITY_DEFS=str(place / "defs"),
        FALCON_DATABASE_URL=url,
        FALCON_LOGINS=str(place / "logins.yaml"),
        FALCON_TLS_CERTIFICATE=crt,
        FALCON_TLS_KEY=key,
        LD_PRELOAD=str(place.with_name("other_clock.so")),
        **{FILE: str(place.with_name(f"{name}.clock"))},
        TMPDIR=str(place),
        **own,
        **ENVIRON,
    )


def _colos(made: Mapping[str, Installation], front: Mapping[str, str], authority: Authority) -> str:
    """The front shows its own certificate."""
    shown = {"certificate": front["FALCON_TLS_CERTIFICATE"], "key": front["FALCON_TLS_KEY"]}
    proof = {"tls": shown, "authorities": authority.pem, "timeout": 8}
    return yaml.safe_dump({"colos": [{"name": name, "url": one.url, **proof} for name, one in made.items()]})
