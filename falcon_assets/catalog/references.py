"""Values of references in definitions; the one place where secrets are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from falcon_assets.base.texts import keep_secret
from falcon_assets.catalog.encryption import CustomerKeys, master_keys
from falcon_assets.catalog.secret_files import secret_in
from falcon_assets.errors import FalconError, SecretError
from falcon_assets.model.reference import EncryptedValue, FileValue, Reference
from falcon_assets.settings import MASTER_KEY, definitions_folder, master_key_sources


def value_of(reference: Reference, environ: Mapping[str, str]) -> str | None:
    """Returns the secret, which this process hides in all texts from now on; None: its variable is not set.

    Raises:
        SecretError: it cannot be decrypted, with file and line, and what to do; or its file cannot be read.
    """
    if isinstance(reference, EncryptedValue):
        value: str | None = _decrypted(reference, environ)
    elif isinstance(reference, FileValue):
        value = secret_in(reference, environ)
    elif reference.env == MASTER_KEY:
        raise SecretError(f"{MASTER_KEY} is for falcon only: name another variable")
    else:
        value = environ.get(reference.env)
    keep_secret([value] if value else [])
    return value


def known_value(reference: Reference, environ: Mapping[str, str]) -> str:
    """Returns the secret, to hide it; "" where it is not available."""
    try:
        return value_of(reference, environ) or ""
    except FalconError:
        return ""


def _decrypted(reference: EncryptedValue, environ: Mapping[str, str]) -> str:
    root = definitions_folder(environ)
    try:
        masters = master_keys(master_key_sources(environ))
        return CustomerKeys.read(root).decrypt(reference.encrypted, reference.place, masters)
    except SecretError as error:
        raise SecretError(f"{_where(root, reference)}: {error}") from None


def _where(root: Path, reference: EncryptedValue) -> str:
    from falcon_assets.catalog.stored_secrets import encrypted_values  # noqa: PLC0415 - it parses YAML

    for one in encrypted_values(root, reference.encrypted):
        if one.place == reference.place:
            return f"{one.document.position(one.path)}: {one.key}"
    return reference.place
