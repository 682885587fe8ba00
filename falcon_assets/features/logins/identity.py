"""Who somebody is, as a way in says it, and the errors of those who are nobody."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from falcon_assets.errors import DeniedError

LONGEST_NAME = 200


class Identity(NamedTuple):
    """A user whose name is proved; ``groups`` are those that the way in names."""

    name: str
    groups: frozenset[str]
    way: str


class LoginRefusedError(DeniedError):
    """Nobody gets in like this; ``name`` is the one that was claimed, "" where none was."""

    def __init__(self, message: str, name: str = "") -> None:
        self.name = name[:LONGEST_NAME]
        super().__init__(message)


class TooManyAttemptsError(LoginRefusedError):
    """So many attempts failed that no other one is looked at for a while."""


def is_name(text: str) -> bool:
    """Whether a user can have that name: it is written into logs, tags and the audit."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()


def identity(name: object, groups: object, way: str) -> Identity:
    """Raises LoginRefusedError where a way in has said something that is no name; what is no group is left out."""
    if not isinstance(name, str) or not is_name(name):
        raise LoginRefusedError("the name cannot be used: it is empty, too long, or cannot be printed")
    listed = groups if isinstance(groups, list | tuple | set | frozenset) else ()
    return Identity(name, frozenset(one for one in listed if isinstance(one, str) and is_name(one)), way)


def _header(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", text):
        raise ValueError("must be the name of a header: letters, digits and '-'")
    return text


HeaderName = Annotated[str, AfterValidator(_header)]
