"""What no path may contain, wherever it is declared."""

from __future__ import annotations

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import NonEmpty


def has_control_characters(text: str) -> bool:
    """Whether a line break, a NUL or another character is in it that is no text."""
    return any(unicodedata.category(char) in ("Cc", "Cs") for char in text)


def legal_path(text: str) -> str:
    """The path itself.

    Raises:
        ExpressionError: it has control characters, or leads upwards.
    """
    if has_control_characters(text):
        raise ExpressionError(f"{text!r}: a path must not contain control characters")
    if ".." in text.split("/"):
        raise ExpressionError(f"{text!r}: a path must not contain '..'")
    return text


def _legal_folder(text: str) -> str:
    if not any(folder not in ("", ".") for folder in text.split("/")):
        raise ExpressionError(f"{text!r} is the root itself: name a folder below it")
    return legal_path(text)


def _legal_file_name(name: str) -> str:
    if name in (".", "..") or has_control_characters(name):
        raise ExpressionError(f"{name!r} is not the name of a file")
    return name


LegalPath = Annotated[NonEmpty, AfterValidator(legal_path)]
"""A path or a URL."""
LegalFolder = Annotated[NonEmpty, AfterValidator(_legal_folder)]
"""A folder below a root, not the root itself."""
LegalFileName = AfterValidator(_legal_file_name)
"""For texts without slashes: such a text names a file."""


def is_within(inner: str, outer: str) -> bool:
    """Whether a path below a root is the other one, or lies in it."""
    first, second = ("".join(f"{one}/" for one in path.split("/") if one not in ("", ".")) for path in (inner, outer))
    return first.startswith(second)
