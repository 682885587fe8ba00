"""Paths on their way to Spark and back: there they are patterns, and come back as URLs."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from falcon_assets.errors import WorkflowError
from falcon_assets.storage.instances.data_files import shown

_PATTERN = re.compile(r"[{}\[\]*?\\]")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


def literal(url: str) -> str:
    """``url`` for whatever reads it with Spark: nothing in it is a pattern.

    Raises:
        WorkflowError: Hadoop has no way to say it.
    """
    utf8(url)
    if _PATTERN.search(url) and ":" in path_of(url):
        # Hadoop's Globber makes a relative path of each step, and takes what stands before a colon for a scheme.
        raise WorkflowError(
            f"{url}: Spark cannot read a path that holds a colon and one of {{ }} [ ] * ? \\ as well: rename a folder"
        )
    return _PATTERN.sub(r"\\\g<0>", url)


def utf8(url: str) -> str:
    """``url`` as it is.

    Raises:
        WorkflowError: it is not UTF-8, so no JVM can be told.
    """
    try:
        url.encode()
    except UnicodeEncodeError:
        raise WorkflowError(f"{shown(url)}: Spark cannot be told a path that is not UTF-8: rename the folder") from None
    return url


def path_of(url: str) -> str:
    """The path of a URL as :class:`.InputData` has it: as it is, with nothing escaped."""
    return "/" + "/".join(steps_of(_SCHEME.sub("", url)))


def path_of_file(url: str) -> str:
    """The path of a file as Spark lists it: a URL with escapes, of a name that Java took for UTF-8."""
    return os.fsdecode(unquote(path_of(url), errors="surrogateescape").encode("utf-8", "surrogateescape"))


def steps_of(path: str) -> list[str]:
    """The names in a path."""
    return [step for step in path.split("/") if step]
