"""The front of several colos: asks them over REST, and makes up for what they miss while it runs."""

from __future__ import annotations

import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from sqlalchemy.exc import SQLAlchemyError
from urllib3.connection import HTTPConnection

from falcon_assets.doctor.admin import ShowVersions
from falcon_assets.errors import (
    FalconError,
    MissingDefinitionsError,
    SecretError,
    SettingsError,
    UnknownEntityError,
    UnknownInstanceError,
)
from falcon_assets.features.colos.asking import AskedColos, ColoAwayError, UnansweredError
from falcon_assets.features.colos.declaration import Colo, read_colos
from falcon_assets.features.colos.prism import Look, Prism
from falcon_assets.features.logins.ways.on_behalf import headers_for
from falcon_assets.model.access import Principal
from falcon_assets.operations.operation import Operation
from falcon_assets.settings import Settings
from falcon_assets.surface.rest.client import RemoteError, Server
from falcon_assets.surface.served import ServedInstallation

_LOOK_SECONDS = 10
_HALF_SECOND = 0.5
"""Times over HTTP are cut off at seconds."""
_CONNECT_SECONDS = 5
_AWAY = (401, 407, 408, 429, 502, 503)
"""It was not performed: nobody is known there, a proxy has no server behind it, or the server is busy."""
_FOUND_KINDS = {
    "urn:falcon:unknown-entity": UnknownEntityError,
    "urn:falcon:unknown-instance": UnknownInstanceError,
    "urn:falcon:missing-definitions": MissingDefinitionsError,
}
_LOG = logging.getLogger(__name__)


class _TakingBack(HTTPAdapter):
    """Takes back what was not received when it closes a connection: else it would be performed when a link is back."""

    def init_poolmanager(self, *args: Any, **how: Any) -> None:
        """Adds an option of the sockets."""
        linger = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        super().init_poolmanager(*args, socket_options=[*HTTPConnection.default_socket_options, linger], **how)


def _session(colo: Colo) -> requests.Session:
    """What the environment says of proxies and authorities is looked up once: that took as long as a request."""
    made = requests.Session()
    said = made.merge_environment_settings(colo.url, {}, None, None, None)
    made.trust_env = False
    made.proxies.update(said["proxies"])
    made.verify = said["verify"]
    for scheme in ("https://", "http://"):
        made.mount(scheme, _TakingBack())
    return made


class ColosOverRest:
    """Has colos perform operations; a :class:`.Performer`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sessions = dict[str, requests.Session]()
        self._lock = threading.Lock()

    def _server(self, colo: Colo) -> Server:
        """Raises ColoAwayError where the token cannot be read."""
        try:
            token = colo.secret(self._settings.environ)
        except (SettingsError, SecretError) as error:
            raise ColoAwayError(str(error)) from None
        session = self._session(colo)
        return Server(
            colo.url,
            token,
            seconds=(min(_CONNECT_SECONDS, colo.timeout), colo.timeout),
            certificate=(colo.tls.certificate, colo.tls.key) if colo.tls else None,
            authorities=colo.authorities or session.verify,
            session=session,
        )

    def _session(self, colo: Colo) -> requests.Session:
        with self._lock:
            return self._sessions.get(colo.name) or self._sessions.setdefault(colo.name, _session(colo))

    def look(self, colo: Colo) -> Look:
        """Asks for versions, and for the time; raises as when it is called."""
        server, began = self._server(colo), time.time()
        try:
            found, said = server.data_and_time(ShowVersions)
        except RemoteError as error:
            raise _meaning(error) from None
        seconds = time.time() - began
        try:
            theirs = parsedate_to_datetime(said).timestamp() + _HALF_SECOND
        except (TypeError, ValueError):
            return Look(found, seconds, None)
        return Look(found, seconds, round(theirs - (began + seconds / 2), 1))

    def __call__(self, colo: Colo, principal: Principal | None, asked: Operation, *, only_data: bool = False) -> Any:
        server = replace(self._server(colo), headers=headers_for(principal) if principal else {})
        try:
            return server.perform(asked, as_json=only_data)
        except RemoteError as error:
            raise _meaning(error) from None


def _meaning(error: RemoteError) -> FalconError:
    if not error.status:
        return UnansweredError(str(error)) if error.was_sent else ColoAwayError(str(error))
    if error.status in _AWAY or error.status < 400:
        return ColoAwayError(str(error))
    if error.status >= 500:
        return UnansweredError(str(error))
    return _FOUND_KINDS[error.kind](str(error)) if error.kind in _FOUND_KINDS else error


@contextmanager
def one_face(served: ServedInstallation, settings: Settings) -> Iterator[Prism | None]:
    """Has the colos of FALCON_COLOS perform what is requested; without it, nothing is changed.

    Raises SettingsError where the file has problems.
    """
    if settings.colos is None:
        yield None
        return
    declared = {one.name: one for one in read_colos(settings.colos).colos}
    over_rest = ColosOverRest(settings)
    asked = AskedColos(declared, over_rest)
    prism = Prism(asked, lambda: served.once(lambda shared: shared.tables), over_rest.look)
    served.performer = prism.perform
    ended = threading.Event()
    healing = threading.Thread(target=_heal, args=(prism, ended), name="colos", daemon=True)
    healing.start()
    try:
        yield prism
    finally:
        ended.set()
        asked.close()
        healing.join()


def _heal(prism: Prism, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_SECONDS):
        try:
            prism.making_up.heal()
        except (FalconError, SQLAlchemyError) as error:
            _LOG.warning("what colos miss could not be made up for: %s", error)
        except Exception:
            if not ended.is_set():
                _LOG.exception("what colos miss could not be made up for")
