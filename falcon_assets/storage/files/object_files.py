"""The objects of a store that knows no folders: names may hold slashes, and one request lists thousands of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from falcon_assets.model.store_url import OBJECT_STORES
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.remote_files import RemoteFiles


class ObjectFiles(RemoteFiles):
    cannot = frozenset(Ability) - {Ability.SPARK_OUTPUT, Ability.VERSIONS}

    def all_below(self, base: str) -> Iterator[Mapping[str, Any]]:
        self.refresh()
        for name, entry in self.fs.find(base, detail=True).items():
            if entry["type"] == "file" and not str(name).endswith("/"):
                yield {**entry, "name": str(name)}

    def identity(self, path: str) -> object | None:
        return None  # there are no folders that others could take the place of


def holds_objects(protocol: str | tuple[str, ...] | list[str]) -> bool:
    return not OBJECT_STORES.isdisjoint([protocol] if isinstance(protocol, str) else protocol)
