"""Files that hold a secret each, as Kubernetes and systemd hand them to processes."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from falcon_assets.errors import SecretError
from falcon_assets.model.reference import FileValue
from falcon_assets.settings import MASTER_KEY_FILE, home_folder, master_key_sources

_LONGEST = 100_000


def secret_file(reference: FileValue, environ: Mapping[str, str]) -> Path:
    """Returns the path, which is below FALCON_HOME where it is relative."""
    return home_folder(environ) / reference.file


def secret_in(reference: FileValue, environ: Mapping[str, str]) -> str:
    """Returns the text of the file without the line break at its end.

    Raises:
        SecretError: it cannot be read, is empty, is no text, or is a master key.
    """
    path = secret_file(reference, environ)
    if any(_is_same(path, master) for master in master_key_sources(environ).files):
        raise SecretError(f"{path} is in {MASTER_KEY_FILE}, which is for falcon only: name another file")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would be waited for
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SecretError(f"{path} is no regular file")
            raw = opened.read(_LONGEST + 1)
    except OSError as error:
        raise SecretError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > _LONGEST:
        raise SecretError(f"{path} has more than {_LONGEST:,} bytes: name the file of one secret")
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretError(f"{path} is no text in UTF-8") from None
    if not text:
        raise SecretError(f"{path} is empty")
    return text


def others_who_read(path: Path) -> bool:
    """Whether other users than its owner may read the file; False where that cannot be found out."""
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
