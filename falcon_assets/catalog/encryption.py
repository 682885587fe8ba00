"""Encryption of secrets in definitions: master keys wrap customer keys, which encrypt values for their places.

The file of customer keys lies with the definitions, and is as safe to commit as they are. Everything is AES-GCM with
keys of 256 bits: what is encrypted is authenticated, together with what it is for.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falcon_assets.errors import SecretError
from falcon_assets.settings import MASTER_KEY, MASTER_KEY_FILE, MasterKeySources

CUSTOMER_KEYS = "customer_keys.json"
"""In the folder of the definitions."""
_SIZE = 32
_NONCE = 12
_TOKEN = re.compile(r"v1:([0-9a-f]{8}):([A-Za-z0-9_-]{39,})")
_GIVE = f"set {MASTER_KEY_FILE} or {MASTER_KEY} here and wherever Dagster runs"


@dataclass(frozen=True)
class Sealed:
    """A token: the id of the key that opens it, and what is encrypted."""

    key: str
    content: bytes

    @classmethod
    def parse(cls, text: str) -> Sealed | None:
        """None: it is no token; another spelling of the same bytes is none either."""
        found = _TOKEN.fullmatch(text)
        content = _bytes(found[2]) if found else None
        return cls(found[1], content) if found and content else None

    def __str__(self) -> str:
        return f"v1:{self.key}:{_text(self.content)}"


@dataclass(frozen=True)
class MasterKey:
    """A master key; its id tells it from others and says nothing else about it."""

    raw: bytes
    source: str

    @classmethod
    def parse(cls, text: str, source: str) -> MasterKey:
        """Raises SecretError, which does not quote it."""
        raw = _bytes(text.strip())
        if raw is None or len(raw) != _SIZE:
            raise SecretError(f"{source} holds no master key: falcon secrets keygen FILE makes one")
        return cls(raw, source)

    def __repr__(self) -> str:
        return f"MasterKey({self.id}, {self.source})"

    @property
    def id(self) -> str:
        return hashlib.sha256(b"falcon master key\0" + self.raw).hexdigest()[:8]


def new_master_key() -> str:
    return _text(secrets.token_bytes(_SIZE))


def master_keys(given: MasterKeySources) -> list[MasterKey]:
    """Returns the master keys that are given; the first one wraps, all of them open.

    Raises:
        SecretError: one is malformed, or its file cannot be read or is open to others.
    """
    found = [MasterKey.parse(text, MASTER_KEY) for text in given.texts]
    return [*found, *(MasterKey.parse(_own_file(file), str(file)) for file in given.files)]


def _own_file(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would be waited for
        with os.fdopen(descriptor, "rb") as opened:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise SecretError(f"{MASTER_KEY_FILE}: {file} is no regular file")
            if found.st_mode & 0o077 or found.st_uid not in (0, os.geteuid()):
                raise SecretError(
                    f"{MASTER_KEY_FILE}: {file} is open to other users, and is not used: chmod 600 {file}, "
                    "and make a new key if somebody may have read it"
                )
            return opened.read(1_000).decode("ascii", "replace")
    except OSError as error:
        raise SecretError(f"{MASTER_KEY_FILE}: {file} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class CustomerKeys:
    """The customer keys of a tree, wrapped; the last one encrypts, all of them decrypt."""

    path: Path
    wrapped: Mapping[str, Sealed]

    @classmethod
    def read(cls, root: Path) -> CustomerKeys:
        """Reads the keys of a tree, which has none yet where there is no file.

        Raises:
            SecretError: the file cannot be read, or is damaged.
        """
        path = root / CUSTOMER_KEYS
        try:
            said = json.loads(path.read_bytes())["keys"]
            found = {str(one["id"]): Sealed.parse(one["wrapped"]) for one in said}
        except FileNotFoundError:
            return cls(path, {})
        except OSError as error:
            raise SecretError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, RecursionError):
            found = {"": None}
        keys = {name: one for name, one in found.items() if one is not None}
        if len(keys) != len(found) or not keys:
            raise SecretError(f"{path} is damaged: restore it from where the definitions are kept")
        return cls(path, keys)

    def content(self) -> bytes:
        keys = [{"id": name, "wrapped": str(one)} for name, one in self.wrapped.items()]
        return (json.dumps({"keys": keys}, indent=2) + "\n").encode()

    @property
    def current(self) -> str:
        return [*self.wrapped][-1]

    def opened(self, key: str, masters: Sequence[MasterKey]) -> bytes:
        """Returns a customer key; raises SecretError where no master key opens it."""
        sealed = self.wrapped.get(key)
        if sealed is None:
            raise SecretError(f"it is encrypted with the customer key {key}, which is not in {self.path}")
        if not masters:
            raise SecretError(f"it is encrypted, and no master key is given: {_GIVE}")
        for master in masters:
            if master.id == sealed.key:
                if raw := _open(master.raw, sealed, _about(key)):
                    return raw
                raise SecretError(f"{self.path} is damaged: restore it from where the definitions are kept")
        given = ", ".join(one.id for one in masters)
        raise SecretError(
            f"it needs the master key {sealed.key}, and another one is given ({given}): {_GIVE}, the old and the new "
            "one during a rotation"
        )

    def with_new(self, masters: Sequence[MasterKey]) -> CustomerKeys:
        """Returns these keys and a new one, which encrypts from now on."""
        key = secrets.token_hex(4)
        return CustomerKeys(self.path, {**self.wrapped, key: _wrap(key, secrets.token_bytes(_SIZE), masters)})

    def wrapped_anew(self, masters: Sequence[MasterKey], keys: Iterable[str]) -> CustomerKeys:
        """Returns those ``keys`` wrapped by the first master key; raises SecretError where one cannot be opened."""
        wanted = {key: _wrap(key, self.opened(key, masters), masters) for key in self.wrapped if key in keys}
        return CustomerKeys(self.path, wanted)

    def encrypt(self, value: str, place: str, masters: Sequence[MasterKey]) -> str:
        """Encrypts for that place only; raises SecretError where the customer key cannot be opened."""
        key = self.current
        return str(_seal(key, self.opened(key, masters), value.encode(), place))

    def decrypt(self, text: str, place: str, masters: Sequence[MasterKey]) -> str:
        """Returns the value of a token that was encrypted for that place; raises SecretError, which says why not."""
        sealed = Sealed.parse(text)
        if sealed is None:
            raise SecretError(f"it is not what falcon secrets encrypt prints: {_again(place)}")
        value = _open(self.opened(sealed.key, masters), sealed, place)
        if value is None:
            raise SecretError(f"it was encrypted for another place, or it is damaged: {_again(place)}")
        return value.decode()


def _again(place: str) -> str:
    return f"encrypt the value again: falcon secrets encrypt {place}"


def _about(key: str) -> str:
    return f"customer key {key}"


def _wrap(key: str, raw: bytes, masters: Sequence[MasterKey]) -> Sealed:
    if not masters:
        raise SecretError(f"no master key is given: {_GIVE}; falcon secrets keygen FILE makes one")
    return _seal(masters[0].id, masters[0].raw, raw, _about(key))


def _seal(key: str, raw: bytes, content: bytes, about: str) -> Sealed:
    nonce = os.urandom(_NONCE)
    return Sealed(key, nonce + _cipher(raw).encrypt(nonce, content, about.encode()))


def _open(raw: bytes, sealed: Sealed, about: str) -> bytes | None:
    """None: it was changed, or is about something else."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as below

    nonce, content = sealed.content[:_NONCE], sealed.content[_NONCE:]
    try:
        opened: bytes = _cipher(raw).decrypt(nonce, content, about.encode())
    except InvalidTag:
        return None
    return opened


def _cipher(raw: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - few installations have secrets

    return AESGCM(raw)


def _bytes(text: str) -> bytes | None:
    """None: it is not what :func:`_text` makes."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return raw if _text(raw) == text else None


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
