"""The file of the colos (FALCON_COLOS): where each is reached, and as whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, model_validator

from falcon_assets.catalog.references import value_of
from falcon_assets.catalog.settings_files import FrontAddress, read_settings_file
from falcon_assets.errors import SettingsError
from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.reference import EnvironmentValue, FileValue

VARIABLE = "FALCON_COLOS"


class ClientCertificate(Declaration):
    """PEM files of what is shown to the colo: a certificate with its chain, and its key."""

    certificate: NonEmpty
    """Path of the certificate."""
    key: NonEmpty
    """Path of its key, which has no password."""


class Colo(Declaration):
    """An installation of its own, with a front."""

    name: NonEmpty
    """As `colo` of its clusters; without commas, which are between names where several are chosen."""
    url: FrontAddress
    """The address of its front, with its path prefix: https://falcon.east.example.com."""
    timeout: float = Field(10, gt=0, le=25)
    """Seconds that a request to it may take."""
    token: EnvironmentValue | FileValue | None = None
    """The token that is sent: `{env: NAME}` or `{file: ...}`."""
    tls: ClientCertificate | None = None
    """The certificate that is shown."""
    authorities: NonEmpty | None = None
    """PEM file with the authorities of its own certificate; default: those of this machine."""

    @model_validator(mode="after")
    def _safe(self) -> Colo:
        if "," in self.name:
            raise ValueError(f"name: {self.name!r} has a comma, which is between names where several colos are chosen")
        if self.tls and not self.url.startswith("https://"):
            raise ValueError("tls: a certificate is shown over https only")
        return self

    def secret(self, environ: Mapping[str, str]) -> str | None:
        """The token, None: none is sent; raises SettingsError where it has no value, and SecretError."""
        found = value_of(self.token, environ) if self.token else None
        if self.token and not found:
            raise SettingsError(f"{VARIABLE}: {self.name}: {self.token} has no value")
        return found


class ColosDeclaration(Declaration):
    """The colos that a front is the one face of."""

    colos: tuple[Colo, ...] = Field(min_length=1)
    """Each is an installation of its own."""

    @model_validator(mode="after")
    def _different(self) -> ColosDeclaration:
        for name, number in Counter(one.name for one in self.colos).items():
            if number > 1:
                raise ValueError(f"colos: {name!r} is there {number} times")
        return self


def read_colos(path: Path) -> ColosDeclaration:
    """Raises SettingsError where the file cannot be read, or has problems, each with its line."""
    return read_settings_file(VARIABLE, path, ColosDeclaration, "no colo can be reached")
