"""A catalog's answers on the instances of a feed: asked for together, and remembered from then on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from falcon_assets.errors import StorageError
from falcon_assets.model.table_uri import ANY, TableUri
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.tables.catalog import Partition, TableLayout, Values
from falcon_assets.storage.tables.key_values import canonical, has_spellings, same, spelled
from falcon_assets.storage.tables.table_store import TableStore


def version_of(partitions: Sequence[Partition]) -> DataVersion:
    version = partitions[0].version
    if len(partitions) > 1:
        text = repr(sorted((one.values, one.version) for one in partitions))
        version = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return DataVersion(version, sum(one.files for one in partitions), sum(one.bytes for one in partitions))


class TableLook:
    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._listed: dict[str, list[Values]] = {}
        self._found: dict[str, tuple[Partition, ...]] = {}

    def layout(self, uri: TableUri) -> TableLayout | None:
        """Asks anew; None: there is no table. Raises StorageError if it has other partition keys than the URI."""
        layout = self._store.catalog.layout(uri.database, uri.table)
        if layout is not None and (differs := uri.differs_from(layout.key_names)):
            raise StorageError(f"cluster {self._store.cluster.name!r}: {uri}: the table is there, but {differs}")
        return layout

    def list(self, paths: InstancePaths) -> Mapping[str, Sequence[Values]]:
        """Returns the partitions of each path that is there, also if it is not one of an instance."""
        uri = TableUri.parse(paths.template.text)
        layout = self.layout(uri)
        if layout is None:
            return {}
        one = TableUri.parse(paths.data(paths.timeline.start))
        every = self._fixed(layout, one)
        fixed = {key: every[key] for key, value in uri.fixed.items() if "${" not in value}
        found: dict[str, list[Values]] = {}
        for values in self._store.catalog.values(uri.database, uri.table, fixed):
            own = (
                spelled(key, value, one.fixed.get(key.name.lower(), value))
                for key, value in zip(layout.keys, same(layout.keys, values), strict=True)
            )
            found.setdefault(str(uri.of(layout.key_names, tuple(own))), []).append(values)
        self._listed |= found
        return found

    def _fixed(self, layout: TableLayout, uri: TableUri) -> dict[str, str]:
        """Returns the keys with one value, in lower case, and that value as catalogs have it."""
        try:
            return {
                key.name.lower(): canonical(key, uri.fixed[key.name.lower()])
                for key in layout.keys
                if key.name.lower() in uri.fixed
            }
        except ValueError as error:
            raise StorageError(f"cluster {self._store.cluster.name!r}: {uri}: {error}") from None

    def required(self, path: str) -> tuple[Partition, ...]:
        """Raises StorageError if there is none."""
        found = self.partitions(path)
        if not found:
            raise StorageError(f"cluster {self._store.cluster.name!r}: there is nothing at {path}")
        return found

    def partitions(self, path: str) -> tuple[Partition, ...]:
        """Returns the partitions of an instance, by its URI; asks only once."""
        if path not in self._found:
            self.ask([path])
        return self._found[path]

    def ask(self, paths: Sequence[str]) -> None:
        """Asks for instances of one feed; StorageError: the table has other partition keys, or a key no such value."""
        uris = {path: TableUri.parse(path) for path in paths}
        first = next(iter(uris.values()))
        layout = self.layout(first)
        if layout is None:
            self._found |= dict.fromkeys(paths, ())
            return
        wanted = self._wanted(layout, uris)
        every = [values for each in wanted.values() for values in each]
        there = self._store.catalog.partitions(first.database, first.table, every)
        for path, each in wanted.items():
            self._found[path] = tuple(there[values] for values in sorted(each) if values in there)

    def _wanted(self, layout: TableLayout, uris: Mapping[str, TableUri]) -> dict[str, Sequence[Values]]:
        asked = {path: self._fixed(layout, uri) for path, uri in uris.items() if path not in self._listed}
        single = [fixed for fixed in asked.values() if len(fixed) == len(layout.keys)]
        spelled_freely = self._store.catalog.keeps_spellings and any(map(has_spellings, layout.keys))
        there = self._spellings(layout, next(iter(uris.values())), single) if single and spelled_freely else {}
        wanted: dict[str, Sequence[Values]] = {path: self._listed[path] for path in uris if path in self._listed}
        for path, fixed in asked.items():
            one = tuple(fixed.get(key.name.lower(), ANY) for key in layout.keys)
            if len(fixed) < len(layout.keys):
                wanted[path] = self._store.catalog.values(uris[path].database, uris[path].table, fixed)
            else:
                wanted[path] = there.get(one, ()) if spelled_freely else [one]
        return wanted

    def _spellings(
        self, layout: TableLayout, uri: TableUri, asked: Sequence[Mapping[str, str]]
    ) -> Mapping[Values, Sequence[Values]]:
        common = {key: value for key, value in asked[0].items() if all(one[key] == value for one in asked)}
        found: dict[Values, tuple[Values, ...]] = {}
        for values in self._store.catalog.values(uri.database, uri.table, common):
            one = same(layout.keys, values)
            found[one] = (*found.get(one, ()), values)
        return found
