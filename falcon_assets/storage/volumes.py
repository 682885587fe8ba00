"""Several volumes of one cluster, as one store: an instance lies on one of them, and is looked for on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.model.cluster import Cluster, StorageOption
from falcon_assets.model.store_url import store_url
from falcon_assets.planning.volumes import roomiest
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.roots import RootGuard


class VolumesStore(ClusterStore):
    """The first volume, with the others beside it; paths lead to the volume on which something lies.

    A volume that is away takes only its own instances away: the ledger knows by their places which ones those are.
    """

    def __init__(
        self,
        cluster: Cluster,
        home: Path,
        environ: Mapping[str, str],
        *,
        readonly: bool = False,
        options: Mapping[str, StorageOption] | None = None,
        roots: RootGuard | None = None,
    ) -> None:
        super().__init__(cluster, home, environ, readonly=readonly, options=options, roots=roots)
        urls = [None, *(store_url(one, home) for one in cluster.interfaces.write.endpoints[1:])]
        self._volumes = tuple(
            ClusterStore(cluster, home, environ, readonly=readonly, root=url, roots=roots) for url in urls
        )

    @property
    def volumes(self) -> tuple[ClusterStore, ...]:
        return self._volumes

    def looked_at(self) -> tuple[list[ClusterStore], list[tuple[ClusterStore, UnreachableError]]]:
        """Returns the volumes that are there, and those that are away or cannot be looked at, with the reasons."""
        there, away = list[ClusterStore](), list[tuple[ClusterStore, UnreachableError]]()
        for volume in self._volumes:
            try:
                volume.require_root()
            except UnreachableError as error:
                away.append((volume, error))
            else:
                there.append(volume)
        return there, away

    def there(self) -> list[ClusterStore]:
        """Returns the volumes that are there; raises UnreachableError if none is."""
        there, away = self.looked_at()
        if not there:
            raise away[0][1]
        return there

    def require_root(self, *, claims: bool = False, afresh: bool = False) -> None:
        self.there()

    def lying(self, relative: str) -> ClusterStore | None:
        """Returns the volume on which something lies; None: nothing is there.

        Raises UnreachableError where the ledger knows it on a volume that is away, and StorageError where it lies on
        two.
        """
        there, away = self.looked_at()
        found = [one for one in there if one.fs.lexists(one.path(relative))]
        if len(found) > 1:
            places = " and at ".join(one.shown(relative) for one in found)
            raise StorageError(
                f"cluster {self.cluster.name!r}: {relative} lies at {places}: an instance is on one volume, so remove "
                "the one that is wrong"
            )
        if found:
            return found[0]
        for volume, error in away:
            if volume.is_known(relative):
                raise error
        if not there:
            raise away[0][1]
        return None

    def for_writing(self, relative: str, begun: Sequence[ClusterStore]) -> ClusterStore:
        """Returns the volume for an instance: where it lies, where its publication has begun, or the roomiest one.

        Raises as :meth:`lying`.
        """
        found = self.lying(relative)
        if found is not None or begun:
            return found or begun[0]
        there = self.there()
        free = [space.free if (space := one.files.space(_nearest(one))) else 0 for one in there]
        return there[roomiest(free)]

    def path(self, relative: str) -> str:
        return self._of(relative).path(relative)

    def url(self, relative: str) -> str:
        return self._of(relative).url(relative)

    def shown(self, relative: str) -> str:
        try:
            return self._of(relative).shown(relative)
        except StorageError:
            return self._volumes[0].shown(relative)

    @property
    def staging(self) -> str:
        return self.there()[0].staging

    def at(self, root: str | None) -> ClusterStore:
        return next((one for one in self._volumes[1:] if one.root == root), None) or super().at(root)

    def holding(self, place: str) -> ClusterStore:
        """Returns the volume of an absolute path, or of its URL."""

        def begins(volume: ClusterStore) -> tuple[str, str]:
            path = volume.identity.path.rstrip("/")
            return f"{path}/", f"{volume.fs.unstrip_protocol(path)}/"

        inside = [one for one in self._volumes if f"{place}/".startswith(begins(one))]
        return max(inside, key=lambda one: len(one.identity.path), default=self._volumes[0])

    def _of(self, relative: str) -> ClusterStore:
        found = self.lying(relative) if relative.strip("/") else None
        return found or self.there()[0]


def _nearest(volume: ClusterStore) -> str:
    path = volume.path("")
    while not volume.fs.exists(path):
        path = path.rpartition("/")[0] or "/"
    return path
