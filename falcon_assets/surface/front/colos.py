"""The front of several colos: asks them over REST, and makes up for what they miss while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import requests
from sqlalchemy.exc import SQLAlchemyError

from falcon_assets.errors import FalconError, MissingDefinitionsError, UnknownEntityError
from falcon_assets.features.colos.asking import AskedColos, ColoAwayError, UnansweredError
from falcon_assets.features.colos.declaration import Colo, read_colos
from falcon_assets.features.colos.prism import CHANGES, Prism
from falcon_assets.features.entities.operations import ChangeDefinitions, ChangeNamed
from falcon_assets.features.logins.ways.on_behalf import headers_for
from falcon_assets.model.access import Principal
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.settings import Settings
from falcon_assets.surface.rest.client import RemoteError, Server
from falcon_assets.surface.served import ServedInstallation

_LOOK_SECONDS = 10
_CONNECT_SECONDS = 5
_AWAY = (401, 407, 408, 429, 502, 503)
"""It was not performed: nobody is known there, a proxy has no server behind it, or the server is busy."""
_FOUND_KINDS = {
    "urn:falcon:unknown-entity": UnknownEntityError,
    "urn:falcon:missing-definitions": MissingDefinitionsError,
}
_LOG = logging.getLogger(__name__)


class ColosOverRest:
    """Has colos perform operations; a :class:`.Performer`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sessions = dict[str, requests.Session]()

    def server(self, colo: Colo) -> Server:
        """Raises SettingsError and SecretError where the token cannot be read."""
        return Server(
            colo.url,
            colo.secret(self._settings.environ),
            seconds=(min(_CONNECT_SECONDS, colo.timeout), colo.timeout),
            certificate=(colo.tls.certificate, colo.tls.key) if colo.tls else None,
            authorities=colo.authorities or True,
            session=self._sessions.setdefault(colo.name, requests.Session()),
        )

    def __call__(self, colo: Colo, principal: Principal | None, asked: Operation) -> Any:
        server = replace(self.server(colo), headers=headers_for(principal) if principal else {})
        try:
            return server.perform(asked, as_json=False)
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
    asked = AskedColos(declared, ColosOverRest(settings))
    prism = Prism(asked, lambda: served.once(lambda shared: shared.tables))
    served.performer = partial(_perform, prism)
    ended = threading.Event()
    healing = threading.Thread(target=_heal, args=(prism, ended), name="colos", daemon=True)
    healing.start()
    try:
        yield prism
    finally:
        ended.set()
        asked.close()
        healing.join()


def _perform(prism: Prism, installation: Installation, asked: Operation) -> Any:
    if type(asked) in CHANGES:
        assert isinstance(asked, ChangeDefinitions | ChangeNamed)
        return prism.change(installation, asked)
    return asked.run(installation)


def _heal(prism: Prism, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_SECONDS):
        try:
            prism.heal()
        except (FalconError, SQLAlchemyError) as error:
            _LOG.warning("what colos miss could not be made up for: %s", error)
        except Exception:
            if not ended.is_set():
                _LOG.exception("what colos miss could not be made up for")
