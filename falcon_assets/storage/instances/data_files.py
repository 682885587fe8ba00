"""The rule that says which files below an instance's path are its data.

Versions, signatures, collectors, copies and Spark follow it: every regular file at any depth, except the feed's flag at
the top, and hidden files and those in hidden folders.
"""

from __future__ import annotations

import os


def is_hidden(name: str) -> bool:
    """Whether Spark takes no file of that name for data, and looks into no folder of that name.

    Source: Spark's ``HadoopFSUtils.shouldFilterOutPathName`` and ``PartitioningAwareFileIndex.isDataPath``.
    """
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def is_data(relative: str, flag: str | None) -> bool:
    return relative != flag and not any(map(is_hidden, relative.split("/")))


def shown(name: str) -> str:
    r"""Makes a file's name readable, and fit for every log: bytes that are not UTF-8 are shown as ``\xff``."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
