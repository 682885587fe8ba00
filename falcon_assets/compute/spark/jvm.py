"""The environment of every JVM that this package starts, independent of the shell's."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from falcon_assets.errors import SettingsError

_VARIABLE = "LC_ALL"
_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8")
_LC_CTYPE_MASK = 1
_ZONE, _UTC = "TZ", "UTC"
_lock = threading.Lock()
_computing: list[str | None] = []
"""The zone of this process before, once for each block that runs in UTC now."""


def spark_environ() -> dict[str, str]:
    return {**utf8_locale(), _ZONE: _UTC}


@contextmanager
def in_utc() -> Iterator[None]:
    """Sets this process to UTC, as the JVM and its workers are, while the block runs.

    PySpark converts instants from and to Python's ``datetime`` in the zone of the process, not of the session.
    Blocks of several threads may overlap: the last one restores the zone.
    """
    with _lock:
        _computing.append(os.environ.get(_ZONE) if not _computing else _computing[0])
        _set_zone(_UTC)
    try:
        yield
    finally:
        with _lock:
            before = _computing.pop()
            if not _computing:
                _set_zone(before)


def _set_zone(zone: str | None) -> None:
    if zone is None:
        os.environ.pop(_ZONE, None)
    else:
        os.environ[_ZONE] = zone
    if hasattr(time, "tzset"):
        time.tzset()


@lru_cache(maxsize=1)
def utf8_locale() -> dict[str, str]:
    """Returns the variable that makes a JVM decode file names as UTF-8.

    The JVM reads it once, when it starts (``sun.jnu.encoding``); in the locale ``C`` it does not find ``ü.json``. Empty
    where the machine has no such locale, and on macOS, where names are UTF-8 in any locale.
    """
    if sys.platform != "linux":
        return {}
    return next(({_VARIABLE: name} for name in _LOCALES if _exists(name)), {})


def _exists(name: str) -> bool:
    """Whether the machine has that locale; unlike ``setlocale``, this changes nothing in this process."""
    library = ctypes.CDLL(None)
    library.newlocale.restype = ctypes.c_void_p
    library.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    library.freelocale.argtypes = (ctypes.c_void_p,)
    found = library.newlocale(_LC_CTYPE_MASK, name.encode(), None)
    if found:
        library.freelocale(found)
    return bool(found)


@contextmanager
def jvm_starts(more: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Iterator[None]:
    """Sets the environment of JVMs, and the variables that ``more`` returns, while the block runs."""
    given = {**utf8_locale(), **more(os.environ)}
    before = {name: os.environ.get(name) for name in given}
    with in_utc():
        os.environ.update(given)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is not None:
                    os.environ[name] = value
                else:
                    os.environ.pop(name, None)


OLDEST = 17
"""The oldest Java that Spark 4 supports (source: Spark's documentation, "Downloading")."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ANSWER_SECONDS = 20


def require_java(environ: Mapping[str, str]) -> tuple[str, int]:
    """Returns path and version of Spark's Java, of ``JAVA_HOME`` or ``PATH``; raises SettingsError if there is none."""
    home = environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environ.get("PATH", ""))
    where = f"JAVA_HOME is {home}" if home else "JAVA_HOME is not set"
    if found is None or not Path(found).is_file():
        raise SettingsError(
            f"Spark needs Java {OLDEST} or newer and none was found ({where}): "
            f"install one, for example openjdk-{OLDEST}-jre-headless, or set JAVA_HOME"
        )
    version = _version_of(found)
    if version is None:
        raise SettingsError(f"Spark needs Java {OLDEST} or newer, but {found} does not report its version ({where})")
    if version < OLDEST:
        raise SettingsError(f"Spark needs Java {OLDEST} or newer, but {found} is Java {version} ({where})")
    return found, version


@lru_cache(maxsize=8)
def _version_of(java: str) -> int | None:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None
