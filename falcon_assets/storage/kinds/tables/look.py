"""What a catalog says of the instances of a feed: asked for together, and known from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from falcon_assets.errors import StorageError
from falcon_assets.model.table_uri import ANY, TableUri
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.storage.tables.catalog import Partition, TableLayout, Values
from falcon_assets.storage.tables.table_store import TableStore


class TableLook:
    """One look at the tables of a store; methods raise what the catalog does.

    Args:
        store: The tables.
    """

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._listed: dict[str, list[Values]] = {}
        self._found: dict[str, tuple[Partition, ...]] = {}

    def layout(self, uri: TableUri) -> TableLayout | None:
        """The table, asked for anew; None: there is none.

        Raises:
            StorageError: it has other partition keys than the URI.
        """
        layout = self._store.catalog.layout(uri.database, uri.table)
        if layout is not None and (differs := uri.differs_from(layout.key_names)):
            raise StorageError(f"cluster {self._store.cluster.name!r}: {uri}: the table is there, but {differs}")
        return layout

    def list(self, paths: InstancePaths) -> Mapping[str, Sequence[Values]]:
        """The partitions of each path that is there, whether it is one of an instance or not."""
        uri = TableUri.parse(paths.template.text)
        layout = self.layout(uri)
        if layout is None:
            return {}
        fixed = {key: value for key, value in uri.fixed.items() if "${" not in value}
        found: dict[str, list[Values]] = {}
        for values in self._store.catalog.values(uri.database, uri.table, fixed):
            found.setdefault(str(uri.of(layout.key_names, values)), []).append(values)
        self._listed |= found
        return found

    def required(self, path: str) -> tuple[Partition, ...]:
        """As :meth:`partitions`.

        Raises:
            StorageError: there is none.
        """
        found = self.partitions(path)
        if not found:
            raise StorageError(f"cluster {self._store.cluster.name!r}: there is nothing at {path}")
        return found

    def partitions(self, path: str) -> tuple[Partition, ...]:
        """The partitions that an instance is, by its URI; asked for only once."""
        if path not in self._found:
            self.ask([path])
        return self._found[path]

    def ask(self, paths: Sequence[str]) -> None:
        """Asks for the partitions of instances of one feed."""
        uris = {path: TableUri.parse(path) for path in paths}
        first = next(iter(uris.values()))
        layout = self.layout(first)
        keys = [key.lower() for key in layout.key_names] if layout else []
        wanted: dict[str, list[Values]] = {}
        for path, uri in uris.items():
            if layout is None:
                wanted[path] = []
            elif path in self._listed:
                wanted[path] = self._listed[path]
            elif ANY in (value for _, value in uri.keys):
                wanted[path] = self._store.catalog.values(uri.database, uri.table, uri.fixed)
            else:
                wanted[path] = [tuple(uri.fixed[key] for key in keys)]
        every = [values for each in wanted.values() for values in each]
        there = self._store.catalog.partitions(first.database, first.table, every)
        for path, each in wanted.items():
            self._found[path] = tuple(there[values] for values in sorted(each) if values in there)
