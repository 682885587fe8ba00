"""The flag of an instance on an object store that keeps versions: it says in which folder the instance is.

Each version is written once, to a folder of its own, which is never changed::

    INSTANCE/FLAG                  which folder is the instance, and which ones are kept; see :class:`VersionPointer`
    INSTANCE/_versions/ID/...      the files of a version, with an empty flag

A flag that says nothing of the kind is that of an instance whose files lie beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability

VERSIONS = "_versions"
"""The folder of the versions of an instance: hidden, so that nobody takes it for data."""
_FOLDER = re.compile(rf"{VERSIONS}/[0-9a-f]{{32}}")


@dataclass(frozen=True)
class VersionPointer:
    """What such a flag says. Folders are relative to the instance."""

    folder: str
    """The folder of the present version: whoever reads the instance reads this."""
    version: str
    """Its data version."""
    kept: Mapping[str, str]
    """The folders of the versions that were replaced and are kept, by data version."""
    keeps: str
    """``FEED/INSTANCE``, as :attr:`falcon_assets.storage.output_target.KeptAs.name` has it."""

    def encode(self) -> bytes:
        """The content of the flag."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, content: bytes) -> VersionPointer | None:
        """What the content of a flag says; None: no folder."""
        try:
            said = json.loads(content)
            pointer = cls(**said)
            folders = [pointer.folder, *pointer.kept.values()]
            is_ours = isinstance(pointer.keeps, str) and all(map(_FOLDER.fullmatch, folders))
        except (ValueError, TypeError, AttributeError):
            return None
        return pointer if is_ours else None


def data_path(store: ClusterStore, path: str, flag: str | None) -> str:
    """Where the files of the instance at ``path`` lie now: there, or in the folder of its present version.

    Raises:
        OSError: as the store says.
    """
    if flag is None or Ability.RENAME not in store.files.cannot:
        return path
    store.files.refresh()
    try:
        pointer = VersionPointer.decode(store.fs.cat_file(f"{store.path(path)}/{flag}"))
    except FileNotFoundError:
        return path
    return f"{path.rstrip('/')}/{pointer.folder}" if pointer else path
