"""Texts that are recorded, told or printed: without what is secret, of bounded length, and no orders to a terminal."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable

STARS = "*****"
HEAD = 3_000
"""So many characters of a long text are recorded from its beginning,"""
TAIL = 1_000
"""and so many from its end: the first says what happened, the last is what libraries end their stories with."""

_PLAIN = ("true", "false", "none", "null")
_SHORT = 8
"""Shorter secrets are hidden as whole words only: they may be a part of anything."""
_MARGIN = 8_192
"""No secret is longer: one at the edge of what is kept would be known by its half."""
_CREDENTIALS = re.compile(
    r"(://[^\s:/@]{0,256}:|jdbc:oracle:[^\s/@]{1,256}/)(?!\$\{[^{}]*\}@)[^\s/@]{1,1024}@"
    r"|((?<![\w.-])[\w.-]{0,64}(?:password|passwd|pwd|secret|token|api_?key)=)(?!\*{3}|\$\{)[^\s&;,\"'()<>{}\[\]]+",
    re.IGNORECASE,
)
"""What addresses of databases and services carry; ``${name}`` stands for what is declared elsewhere."""


def hides(secrets: Iterable[str]) -> Callable[[str], str]:
    """Puts stars for the secrets, the longest first: one may be a part of another."""
    known = {one for one in secrets if one and one.lower() not in _PLAIN and not (one.isdigit() and len(one) < _SHORT)}
    if not known:
        return str
    found = re.compile("|".join(map(_pattern, sorted(known, key=len, reverse=True))))
    return lambda text: found.sub(STARS, text)


class _Kept:
    """The secrets that this process has come to know, and what hides them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._hide: Callable[[str], str] | None = str

    def add(self, secrets: Iterable[str]) -> None:
        with self._lock:
            if new := frozenset(secrets) - self._secrets:
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
    """From now on :func:`hidden` puts stars for them, in all threads of this process."""
    _kept.add(secrets)


def hidden(text: str) -> str:
    """The text with stars for the secrets of all definitions that this process has read, and for what URLs carry."""
    return without_credentials(_kept.hide(text))


def without_credentials(text: str) -> str:
    """The text with stars for what URLs carry, the same in every process."""
    if "=" not in text and "@" not in text:
        return text
    return _CREDENTIALS.sub(lambda found: f"{found[1]}{STARS}@" if found[1] else f"{found[2]}{STARS}", text)


def visible(text: str) -> str:
    """The text with all that a terminal would act on, or could not show, as escapes; its lines stay lines."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def recorded(text: str) -> str:
    """The text as it is recorded: :func:`hidden`, :func:`visible`, and of a long one the head and the tail.

    Who cuts a text that stands nowhere else writes the whole of it to the log of the run.
    """
    if not is_long(text):
        return visible(hidden(text))
    head = hidden(text[: HEAD + _MARGIN])[:-_MARGIN][:HEAD]
    tail = hidden(text[-(TAIL + _MARGIN) :])[_MARGIN:][-TAIL:]
    left = len(text) - len(head) - len(tail)
    return visible(f"{head} [... {left:,} characters are left out: the log of the run has them ...] {tail}")


def is_long(text: str) -> bool:
    """Whether :func:`recorded` cuts it."""
    return len(text) > HEAD + TAIL + 200  # what it once cut stays as it is


def _pattern(secret: str) -> str:
    text = re.escape(secret)
    return text if len(secret) >= _SHORT else rf"(?<!\w){text}(?!\w)"
