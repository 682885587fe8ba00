"""The files of an instance with their sizes and versions: what a copy is planned by."""

from __future__ import annotations

from collections.abc import Callable

from falcon_assets.planning.replication.copy_plan import ListedFile
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.instance_files import files_of


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
    base = store.path(path)
    with explained(store.cluster.name, f"list {path}"):
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
