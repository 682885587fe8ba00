"""Texts that are recorded, sent or printed: without secrets, of bounded length, without terminal control codes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable

STARS = "*****"
HEAD = 3_000
TAIL = 1_000

_PLAIN = ("true", "false", "none", "null")
_SHORT = 8
"""Shorter secrets are hidden as whole words only: they may be a part of anything."""
_MARGIN = 8_192
"""The longest secret: a secret cut at the edge of the kept text could be recognized by its half."""
_CREDENTIALS = re.compile(
    r"(://[^\s:/@]{0,256}:|jdbc:oracle:[^\s/@]{1,256}/)(?!\$\{[^{}]*\}@)[^\s/@]{1,1024}@"
    r"|((?<![\w.-])[\w.-]{0,64}(?:password|passwd|pwd|secret|token|api_?key)=)(?!\*{3}|\$\{)[^\s&;,\"'()<>{}\[\]]+",
    re.IGNORECASE,
)
"""Matches credentials in URLs of databases and services; ``${name}`` refers to a declaration elsewhere."""


def hides(secrets: Iterable[str]) -> Callable[[str], str]:
    known = {one for one in secrets if one and one.lower() not in _PLAIN and not (one.isdigit() and len(one) < _SHORT)}
    if not known:
        return str
    found = re.compile("|".join(map(_pattern, sorted(known, key=len, reverse=True))))
    return lambda text: found.sub(STARS, text)


class _Kept:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._hide: Callable[[str], str] | None = str

    def add(self, secrets: Iterable[str]) -> None:
        given = frozenset(secrets)  # finding them may add others
        with self._lock:
            if new := given - self._secrets:
                self._secrets |= new
                self._hide = None

    def hide(self, text: str) -> str:
        hide = self._hide
        if hide is None:
            with self._lock:
                self._hide = hide = hides(self._secrets)
        return hide(text)


_kept = _Kept()


def keep_secret(secrets: Iterable[str]) -> None:
    _kept.add(secrets)


def hidden(text: str) -> str:
    """Hides the secrets of all definitions that this process has read, and credentials in URLs."""
    return without_credentials(_kept.hide(text))


def without_credentials(text: str) -> str:
    if "=" not in text and "@" not in text:
        return text
    return _CREDENTIALS.sub(lambda found: f"{found[1]}{STARS}@" if found[1] else f"{found[2]}{STARS}", text)


def visible(text: str) -> str:
    """Escapes what a terminal would act on or cannot show; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def recorded(text: str) -> str:
    """Hides secrets, escapes, and cuts a long text; its caller writes all of it to the log of the run."""
    if not is_long(text):
        return visible(hidden(text))
    head = hidden(text[: HEAD + _MARGIN])[:-_MARGIN][:HEAD]
    tail = hidden(text[-(TAIL + _MARGIN) :])[_MARGIN:][-TAIL:]
    left = len(text) - len(head) - len(tail)
    return visible(f"{head} [... {left:,} characters are left out: the log of the run has them ...] {tail}")


def is_long(text: str) -> bool:
    return len(text) > HEAD + TAIL + 200  # what it once cut stays as it is


def _pattern(secret: str) -> str:
    text = re.escape(secret)
    return text if len(secret) >= _SHORT else rf"(?<!\w){text}(?!\w)"
