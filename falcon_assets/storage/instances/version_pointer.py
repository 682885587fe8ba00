"""The flag of an instance on an object store that keeps versions: it names the folder of the instance.

Each version is written once, to a folder of its own, which is never changed::

    INSTANCE/FLAG                  which folder is the instance, and which ones are kept; see :class:`VersionPointer`
    INSTANCE/_versions/ID/...      the files of a version, with an empty flag

A flag with any other content is that of an instance whose files are beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability

VERSIONS = "_versions"
"""Hidden, so that it is no data."""
_FOLDER = re.compile(rf"{VERSIONS}/[0-9a-f]{{32}}")


@dataclass(frozen=True)
class VersionPointer:
    folder: str
    version: str
    kept: Mapping[str, str]
    keeps: str
    """``FEED/INSTANCE``, as :attr:`falcon_assets.storage.output_target.KeptAs.name`."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, content: bytes) -> VersionPointer | None:
        """Returns None for a flag that names no folder."""
        try:
            said = json.loads(content)
            pointer = cls(**said)
            folders = [pointer.folder, *pointer.kept.values()]
            is_ours = isinstance(pointer.keeps, str) and all(map(_FOLDER.fullmatch, folders))
        except (ValueError, TypeError, AttributeError):
            return None
        return pointer if is_ours else None


def data_path(store: ClusterStore, path: str, flag: str | None) -> str:
    if flag is None or Ability.RENAME not in store.files.cannot:
        return path
    store.files.refresh()
    try:
        pointer = VersionPointer.decode(store.fs.cat_file(f"{store.path(path)}/{flag}"))
    except FileNotFoundError:
        return path
    return f"{path.rstrip('/')}/{pointer.folder}" if pointer else path
