"""Whether a file system is a mounted one, for copies that still ask."""

from __future__ import annotations

from fsspec import AbstractFileSystem

from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.files.local_files import LocalFiles


def is_local(fs: AbstractFileSystem) -> bool:
    """Whether paths of ``fs`` are those of the operating system."""
    return isinstance(files_on(fs), LocalFiles)
