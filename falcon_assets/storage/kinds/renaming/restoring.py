"""Restores a kept version: an ordinary publication of its files."""

from __future__ import annotations

import os
import shutil

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.kinds.renaming.kept_versions import KeptVersions
from falcon_assets.storage.kinds.renaming.moving import link_or_copy
from falcon_assets.storage.kinds.renaming.publication import RenamePublication
from falcon_assets.storage.kinds.renaming.set_aside import replaced
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import copies_folder

_OUTPUT = "version"


def restored(
    store: ClusterStore, key: str, output: OutputTarget, version: str, *, dry_run: bool
) -> tuple[DataVersion, bool]:
    """Removes staged replications of the instance, too: they were planned for what is replaced now."""
    keeps, versions = output.keeps, KeptVersions(store)
    if keeps is None:
        raise StorageError(f"{key}: {KEEPS_NONE}")
    with (
        explained(store.cluster.name, f"restore {output.path}"),
        RenamePublication(store, key, {_OUTPUT: output}) as publication,
    ):
        marker = f"{output.path}/{output.flag}" if output.flag else output.path
        if os.path.lexists(store.path(marker)):
            present = fingerprint(store, output.path, output.flag)
            if present.version == version:
                return present, False
        if version not in (one.version for one in versions.of_feed(keeps.feed, keeps.instance)):
            raise StorageError(f"{key}: there is no version {version}: it was not kept, or went already")
        place, staging = versions.place(versions.name(keeps, version)), publication.staging(_OUTPUT)
        if place.is_dir():
            shutil.copytree(place, staging, symlinks=True, copy_function=link_or_copy)
        else:
            link_or_copy(str(place), staging)
        found = fingerprint(store, os.path.relpath(staging, store.path("")), output.flag)
        if found.version != version:
            raise StorageError(f"{key}: what lies at {place} is not version {version} any more: somebody changed it")
        if not dry_run:
            if os.path.lexists(copies := copies_folder(store, output.path)):
                replaced(store).take(copies)
            publication.commit(_OUTPUT)
    return found, True
