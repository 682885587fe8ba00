"""The files of an instance with their sizes and versions, from which a copy is planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from fsspec import AbstractFileSystem

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.errors import explained
from falcon_assets.storage.files.file_access import FileAccess
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.instance_files import files_of


class SourceFiles(NamedTuple):
    base: str
    """The absolute path of their folder, or of the only file."""
    files: dict[str, ListedFile]
    """By relative name; "" is a single file."""
    elsewhere: Mapping[str, str] = MappingProxyType({})
    """By relative name: absolute paths of files outside that folder."""

    def path(self, name: str) -> str:
        return self.elsewhere.get(name) or (f"{self.base}/{name}" if name else self.base)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class SourceStore(Protocol):
    """Where copies read: the store of a cluster, or a datasource; ``cluster`` has its name."""

    @property
    def cluster(self) -> _Named: ...
    @property
    def fs(self) -> AbstractFileSystem: ...
    @property
    def files(self) -> FileAccess: ...


class CopySource(Protocol):
    @property
    def store(self) -> SourceStore: ...

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        """Lists the instance at ``path``, fresh from the store; None: it is not there, or not complete."""


def list_files(
    store: ClusterStore, path: str, flag: str | None, left_out: Callable[[str], bool] = is_hidden
) -> dict[str, ListedFile]:
    """Lists the instance at ``path`` by relative name, fresh from the store; "" is a single file, none: nothing."""
    return list_folder(store, store.path(path), flag, left_out)


def list_folder(
    store: ClusterStore, base: str, flag: str | None, left_out: Callable[[str], bool] = is_hidden
) -> dict[str, ListedFile]:
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
