"""The files of an instance with their sizes and versions: what a copy is planned by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.instance_files import files_of


class SourceFiles(NamedTuple):
    """The files of an instance that is to be copied."""

    base: str
    """The absolute path of the folder that they lie in, or of the only one."""
    files: dict[str, ListedFile]
    """By relative name; "" is a single file."""
    elsewhere: Mapping[str, str] = MappingProxyType({})
    """By relative name: the absolute paths of those that do not lie in that folder."""

    def path(self, name: str) -> str:
        """The absolute path of one of the files."""
        return self.elsewhere.get(name) or (f"{self.base}/{name}" if name else self.base)


class CopySource(Protocol):
    """What instances are copied from: every kind of storage is one."""

    @property
    def store(self) -> ClusterStore:
        """Where the files lie."""

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        """The files of the instance at ``path``, fresh from the store; None: it is not there, or not complete.

        Args:
            path: As :class:`InstancePaths` says it.
            flag: Name of the feed's availability flag.
            left_out: Names of files and folders that do not count.

        Raises:
            StorageError: it cannot be read, or is of a kind that is not copied.
        """


def list_files(
    store: ClusterStore, path: str, flag: str | None, left_out: Callable[[str], bool] = is_hidden
) -> dict[str, ListedFile]:
    """The files of the instance at ``path`` by relative name, fresh from the store; "" is a single file.

    Nothing is there: no files.

    Args:
        store: Where it lies.
        path: Its path below the root.
        flag: Name of the feed's availability flag.
        left_out: Names of files and folders that do not count; None of what is data has such a name.

    Raises:
        StorageError: a link in it leaves the root, or the store cannot be read.
    """
    return list_folder(store, store.path(path), flag, left_out)


def list_folder(
    store: ClusterStore, base: str, flag: str | None, left_out: Callable[[str], bool] = is_hidden
) -> dict[str, ListedFile]:
    """As :func:`list_files`, of an absolute path, which may lie anywhere on the store."""
    with explained(store.cluster.name, f"list {base}"):
        try:
            found = store.files.without_links(base, left_out)
            if found is None:  # there are links: whether they may be followed takes longer to say
                found = {
                    name: (entry["size"], store.files.version(entry["name"]))
                    for name, entry in files_of(store, base, flag, left_out)
                }
        except FileNotFoundError:
            return {}
    return {name: ListedFile(*file) for name, file in found.items() if name != flag}
