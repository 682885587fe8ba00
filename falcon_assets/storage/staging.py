"""Names in a staging location, which say to which instance something belongs."""

from __future__ import annotations

import hashlib
import os
import re

from falcon_assets.storage.cluster_store import ClusterStore

HELD_SECONDS = 7 * 24 * 3600.0
"""How long an output that is not published is kept aside for people."""
TO_ARCHIVE = "@archived"
"""Stands for the source of a copy to an archive: no cluster has such a name."""


def place_key(path: str) -> str:
    """Returns a file name: readable by the end of the path, unique by a hash of all of it."""
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", path).strip("-")[-60:]
    return f"{readable}.{hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()}"


def copies_folder(store: ClusterStore, path: str) -> str:
    return f"{store.staging}/copies/{_key(path)}"


def unfinished_folder(store: ClusterStore) -> str:
    return f"{store.staging}/copies/unfinished"


def unfinished_note(store: ClusterStore, path: str, source: str) -> str:
    """Returns the file that marks an unfinished copy of an instance from a source; it holds ``path``."""
    return f"{unfinished_folder(store)}/{_key(path)}.{source}"


def held_folder(store: ClusterStore, key: str = "") -> str:
    """Returns the folder of outputs that are kept aside, or that of the place with this key."""
    return f"{store.staging}/held/{key}".rstrip("/")


def _key(path: str) -> str:
    return place_key("/".join(step for step in path.split("/") if step))
