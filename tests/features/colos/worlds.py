"""Colos with databases and definitions of their own, on TLS sockets, behind one face; all of them in this process."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
import yaml
from sqlalchemy import delete, select
from starlette.applications import Starlette
from starlette.middleware import Middleware

from falcon_assets.catalog.stored_tree import read_tree
from falcon_assets.features.colos import store
from falcon_assets.features.colos.prism import Prism
from falcon_assets.features.logins.middleware import Authentication
from falcon_assets.features.logins.recognition import open_logins
from falcon_assets.history.platform.open_ledger import tables_engine
from falcon_assets.history.tables import AUDIT, COLO_WANTED, COLOS_READ, ENTITY_STATUS
from falcon_assets.model.access import Role
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings, load_settings
from falcon_assets.surface.front.colos import one_face
from falcon_assets.surface.front.server import server_config
from falcon_assets.surface.rest.interfaces import interfaces
from falcon_assets.surface.served import ServedInstallation, open_served
from tests.builders import cluster_yaml
from tests.features.logins.certificates import Authority
from tests.processes import free_port
from tests.servers import new_database, url_of
from tests.surface.rest.servers import Client, serving
from tests.waiting import wait_until

ROLES = [{"role": "editor", "users": ["ann", "edi", "prism"]}, {"role": "viewer", "users": ["bob"]}]
TIMEOUT = 15.0
"""Seconds that a colo has to answer."""


@dataclass
class ColoServer:
    """A colo, which can be stopped, started again, and made to accept connections without an answer."""

    settings: Settings
    authority: Authority
    port: int
    _running: ExitStack = field(default_factory=ExitStack)
    is_up: bool = False

    @property
    def name(self) -> str:
        return str(self.settings.colo)

    def start(self) -> None:
        """Does nothing where it runs."""
        if not self.is_up:
            self._running.enter_context(self._serving())
            self.is_up = True

    @contextmanager
    def _serving(self) -> Iterator[None]:
        with open_served(self.settings, seconds=30) as served, open_installation(self.settings) as installation:
            logins = open_logins(installation)
            assert logins is not None
            app = Starlette(routes=interfaces(served), middleware=[Middleware(Authentication, logins=logins)])
            certificate, key = self.authority.issue("localhost")
            tls = {"ssl_certfile": certificate, "ssl_keyfile": key, "ssl_ca_certs": self.authority.pem}
            server = uvicorn.Server(server_config(app, "localhost", self.port, ssl_cert_reqs=1, **tls))
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            wait_until(lambda: server.started, 60, what=self.name)
            try:
                yield
            finally:
                server.should_exit = server.force_exit = True
                thread.join(30)

    def stop(self) -> None:
        self._running.close()
        self.is_up = False

    def hang(self) -> None:
        """Accepts connections, and never answers."""
        self.stop()
        self._running.enter_context(socket.create_server(("localhost", self.port), backlog=64))

    def entities(self) -> dict[str, Any]:
        """What it has: ``feed raw`` -> its definition."""
        return {" ".join(key): one.data for key, one in read_tree(self.settings.entity_defs).by_key.items()}

    def statuses(self) -> dict[str, str]:
        with tables_engine(str(self.settings.database_url)).connect() as connection:
            found = connection.execute(select(ENTITY_STATUS.c.name, ENTITY_STATUS.c.status))
            return {row.name: row.status for row in found}

    def audit(self) -> list[tuple[str, str, str]]:
        asked = select(AUDIT.c.principal, AUDIT.c.operation, AUDIT.c.result).order_by(AUDIT.c.id)
        with tables_engine(str(self.settings.database_url)).connect() as connection:
            return [(row.principal, row.operation, row.result) for row in connection.execute(asked)]

    def forget(self) -> None:
        for file in sorted(self.settings.entity_defs.rglob("*.yaml")):
            file.unlink()
        with tables_engine(str(self.settings.database_url)).begin() as connection:
            connection.execute(delete(AUDIT))
            connection.execute(delete(ENTITY_STATUS))


@dataclass
class World:
    """A front of several colos: requests go to ``client``, as an editor."""

    colos: Mapping[str, ColoServer]
    prism: Prism
    client: Client
    settings: Settings
    served: ServedInstallation

    def post(self, word: str, definitions: str = "", client: Client | None = None, **more: Any) -> requests.Response:
        method, path = {"submit": ("POST", ""), "update": ("PUT", "")}.get(word, ("POST", f":{word}"))
        if names := more.pop("names", ()):
            path = f"/{','.join(names)}/{word}"
        body = {**({"definitions": definitions} if definitions else {}), **more}
        return (client or self.client).rest(method, f"/entities{path}", json=body)

    def delete(self, name: str, kind: str) -> requests.Response:
        return self.client.rest("DELETE", f"/entities/{name}", params={"kind": kind})

    def journal(self) -> dict[tuple[str, str], bool]:
        """Colo and entity -> whether it is pending."""
        with tables_engine(str(self.settings.database_url)).connect() as connection:
            found = connection.execute(select(COLO_WANTED.c.colo, COLO_WANTED.c.name, COLO_WANTED.c.is_pending))
            return {(row.colo, row.name): row.is_pending for row in found}

    def lose_journal(self) -> None:
        with tables_engine(str(self.settings.database_url)).begin() as connection:
            connection.execute(delete(COLO_WANTED))
            connection.execute(delete(COLOS_READ))

    @contextmanager
    def not_healing(self) -> Iterator[None]:
        """Nothing is made up for by itself; what asks for it does so."""
        making_up = self.prism.making_up
        heal = making_up.heal
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(making_up, "heal", lambda: heal() if threading.current_thread().name != "colos" else None)
            yield

    def clean(self) -> None:
        """All colos run, and nothing is anywhere."""
        for one in self.colos.values():
            if not one.is_up:
                one.stop()
            one.start()
            one.forget()
        engine = tables_engine(str(self.settings.database_url))
        with store.changing(engine, [f"colo {one}" for one in self.colos]):  # what is being made up for is over then
            self.lose_journal()


@contextmanager
def open_world(
    names: Sequence[str], settings: Settings, template: str, folder: Path, timeout: float = TIMEOUT
) -> Iterator[World]:
    """``settings`` are those of the front."""
    with ExitStack() as opened:
        authority = Authority.make(folder, "company")
        client = authority.issue("prism")
        colos, database = dict[str, ColoServer](), str(settings.database_url)
        for name in names:
            url = url_of(database, opened.enter_context(new_database(database, template)))
            (folder / name / "defs").mkdir(parents=True)
            port = free_port()
            own = load_settings(_environ(folder / name, url, name, port, authority))
            colos[name] = ColoServer(own, authority, port)
            opened.callback(colos[name].stop)
            colos[name].start()
        declared = [
            {
                "name": one.name,
                "url": f"https://localhost:{one.port}",
                "timeout": timeout,
                "tls": {"certificate": client[0], "key": client[1]},
                "authorities": authority.pem,
            }
            for one in colos.values()
        ]
        (folder / "colos.yaml").write_text(yaml.safe_dump({"colos": declared}))
        front = load_settings({**settings.environ, "FALCON_COLOS": str(folder / "colos.yaml")})
        served = opened.enter_context(open_served(front, seconds=120))
        prism = opened.enter_context(one_face(served, front))
        assert prism is not None
        yield World(colos, prism, opened.enter_context(serving(served)).called("ann", Role.EDITOR), front, served)


def _environ(home: Path, url: str, name: str, port: int, authority: Authority) -> dict[str, str]:
    declared = {
        "url": f"https://localhost:{port}",
        "roles": ROLES,
        "certificates": {"authorities": authority.pem},
        "proxy_users": ["prism"],
    }
    (home / "logins.yaml").write_text(yaml.safe_dump(declared))
    return {
        "FALCON_HOME": str(home),
        "FALCON_ENTITY_DEFS": str(home / "defs"),
        "FALCON_DATABASE_URL": url,
        "FALCON_COLO": name,
        "FALCON_WEBSERVER_URL": "",
        "FALCON_LOGINS": str(home / "logins.yaml"),
    }


@pytest.fixture(scope="module")
def world(settings: Settings, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two colos, east and west."""
    with open_world(["east", "west"], settings, template, tmp_path_factory.mktemp("colos")) as found:
        yield found


def lakes(*names: str) -> str:
    """A cluster for each colo, with its name."""
    return "".join(cluster_yaml(f"{one}-lake", colo=one) for one in names)


def said(answer: requests.Response) -> dict[str, str]:
    """Colo -> outcome."""
    return {one["colo"]: one["outcome"] for one in json.loads(answer.text)["colos"]}
