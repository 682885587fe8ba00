"""What lies where in a staging location: the names that say to which instance something belongs."""

from __future__ import annotations

import hashlib
import os
import re

from falcon_assets.storage.cluster_store import ClusterStore

TO_ARCHIVE = "@archived"
"""Stands for the source of a copy to an archive: no cluster has such a name."""


def place_key(path: str) -> str:
    """A file name for ``path``: readable at the end of the path, unique by a hash of all of it."""
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", path).strip("-")[-60:]
    return f"{readable}.{hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()}"


def copies_folder(store: ClusterStore, path: str) -> str:
    """The folder of what replication keeps of an instance, of all sources.

    Args:
        store: The target's.
        path: The target's instance, below the root.
    """
    return f"{store.staging}/copies/{_key(path)}"


def unfinished_folder(store: ClusterStore) -> str:
    """The folder of the notes of all copies that have not come to an end; its name is that of no instance."""
    return f"{store.staging}/copies/unfinished"


def unfinished_note(store: ClusterStore, path: str, source: str) -> str:
    """The file that says that the copy of an instance from a source has not come to an end; it holds ``path``."""
    return f"{unfinished_folder(store)}/{_key(path)}.{source}"


def _key(path: str) -> str:
    return place_key("/".join(step for step in path.split("/") if step))
