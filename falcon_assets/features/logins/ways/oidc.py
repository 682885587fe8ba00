"""Logins by OpenID Connect: the code flow with PKCE, state and nonce."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from pydantic import field_validator

from falcon_assets.catalog.references import value_of
from falcon_assets.errors import SettingsError
from falcon_assets.features.logins.identity import Identity, LoginRefusedError, identity
from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.reference import EnvironmentValue, FileValue

_SECONDS = 10
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that only the provider can make."""
_LOCAL = ("127.0.0.1", "::1", "localhost")


class OidcWay(Declaration):
    """A provider of OpenID Connect, and this client of it."""

    issuer: NonEmpty
    """The URL of the provider, as it names itself."""
    client_id: NonEmpty
    """The name of this client there. Its redirect URI is the url and /falcon/login/oidc/callback."""
    client_secret: EnvironmentValue | FileValue | None = None
    """{env: NAME} or {file: PATH}; default: a client without a secret."""
    scopes: tuple[NonEmpty, ...] = ("openid", "profile", "email")
    """What the provider is asked for."""
    name: NonEmpty = "preferred_username"
    """The claim with the name."""
    groups: NonEmpty = "groups"
    """The claim with the groups."""
    title: NonEmpty = "single sign-on"
    """What the login page calls it."""

    @field_validator("issuer")
    @classmethod
    def _encrypted(cls, text: str) -> str:
        split = urlsplit(text)
        if not split.hostname or not (split.scheme == "https" or (split.scheme == "http" and split.hostname in _LOCAL)):
            raise ValueError("must be an https URL")
        return text

    @field_validator("scopes")
    @classmethod
    def _of_openid(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("must have openid")
        return scopes


@dataclass(frozen=True)
class Attempt:
    """Secrets of one login, all made of the one that the browser keeps meanwhile."""

    secret: str

    def of(self, what: str) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(f"{what} {self.secret}".encode()).digest()).decode().rstrip("=")


@dataclass
class OidcProvider:
    """The provider, whose own description and keys are read when they are needed first."""

    way: OidcWay
    redirect_uri: str
    environ: Mapping[str, str] = field(repr=False)
    _described: Mapping[str, Any] | None = None
    _keys: Any = None

    def begin(self, attempt: Attempt) -> str:
        """Where the browser goes; raises SettingsError where the provider cannot be asked."""
        description = self._description()
        with self._session() as session:
            url, _ = session.create_authorization_url(
                description["authorization_endpoint"],
                state=attempt.of("state"),
                nonce=attempt.of("nonce"),
                code_verifier=attempt.of("verifier"),
            )
        return str(url)

    def finish(self, code: str, attempt: Attempt) -> Identity:
        """The user of a code; raises LoginRefusedError, and SettingsError where the provider cannot be asked."""
        from authlib.integrations.base_client import OAuthError  # noqa: PLC0415 - an extra
        from joserfc.errors import JoseError  # noqa: PLC0415 - as above

        description = self._description()
        try:
            with self._session() as session:
                token = session.fetch_token(
                    description["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=attempt.of("verifier"),
                )
                claims = self._claims(token, attempt.of("nonce"))
                if "userinfo_endpoint" in description and not {self.way.name, self.way.groups} <= claims.keys():
                    more = session.get(description["userinfo_endpoint"]).json()
                    if not isinstance(more, dict) or more.get("sub") != claims["sub"]:
                        raise LoginRefusedError("the provider says who another user is")
                    claims = {**more, **claims}
        except (OAuthError, JoseError, KeyError, ValueError) as error:
            raise LoginRefusedError(f"the provider's answer does not hold: {type(error).__name__}: {error}") from error
        except requests.RequestException as error:
            raise SettingsError(f"oidc: {self.way.issuer} cannot be asked: {type(error).__name__}") from error
        if self.way.name == "email" and claims.get("email_verified") is not True:
            raise LoginRefusedError("the provider has not verified the address", str(claims.get("email", "")))
        return identity(claims.get(self.way.name), claims.get(self.way.groups), "oidc")

    def _session(self) -> Any:
        from authlib.integrations.requests_client import OAuth2Session  # noqa: PLC0415 - an extra

        secret = value_of(self.way.client_secret, self.environ) if self.way.client_secret else None
        if self.way.client_secret and not secret:
            raise SettingsError(f"oidc: {self.way.client_secret} has no value")
        return OAuth2Session(
            self.way.client_id,
            secret,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            scope=" ".join(self.way.scopes),
            redirect_uri=self.redirect_uri,
            code_challenge_method="S256",
            default_timeout=_SECONDS,
        )

    def _claims(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """What the ID token says, after its signature, issuer, audience, time and nonce were checked."""
        from authlib.oidc.core import CodeIDToken  # noqa: PLC0415 - an extra
        from joserfc import jwt  # noqa: PLC0415 - as above
        from joserfc.errors import InvalidKeyIdError  # noqa: PLC0415 - as above
        from joserfc.jws import JWSRegistry  # noqa: PLC0415 - as above

        registry = JWSRegistry(algorithms=list(_ALGORITHMS), strict_check_header=False)
        try:
            signed = jwt.decode(token["id_token"], key=self._key_set(), registry=registry)
        except InvalidKeyIdError:  # the provider has new keys
            signed = jwt.decode(token["id_token"], key=self._key_set(anew=True), registry=registry)
        options = {
            "iss": {"essential": True, "values": [self._description()["issuer"]]},
            "aud": {"essential": True, "values": [self.way.client_id]},
        }
        known = {"nonce": nonce, "client_id": self.way.client_id, "access_token": token.get("access_token")}
        claims = CodeIDToken(signed.claims, signed.header, options, known)
        claims.validate(leeway=60)
        return dict(claims)

    def _key_set(self, *, anew: bool = False) -> Any:
        from joserfc.jwk import KeySet  # noqa: PLC0415 - an extra

        if self._keys is None or anew:
            self._keys = KeySet.import_key_set(self._read(self._description()["jwks_uri"]))
        return self._keys

    def _description(self) -> Mapping[str, Any]:
        if self._described is None:
            found = self._read(f"{self.way.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self.way.issuer:
                raise SettingsError(f"oidc: {self.way.issuer} says that it is {found.get('issuer')}: write that issuer")
            self._described = found
        return self._described

    def _read(self, url: str) -> Any:
        try:
            answer = requests.get(url, timeout=_SECONDS)
            answer.raise_for_status()
            return answer.json()
        except (requests.RequestException, ValueError) as error:
            raise SettingsError(f"oidc: {url} cannot be read: {type(error).__name__}") from error
