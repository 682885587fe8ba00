"""Checks of disks: of FALCON_HOME, of stores on this machine, and of PostgreSQL's data."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import fsspec

from falcon_assets.base.home import NEEDED_BYTES
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.errors import SettingsError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.store_url import is_mounted, store_url
from falcon_assets.planning.eviction import Space
from falcon_assets.storage.files.files_on import files_on

SCARCE_BYTES = 4 * NEEDED_BYTES


def check_home(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether FALCON_HOME can be written, and which other users can enter it."""
    home = context.settings.home
    there = _nearest(home)
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
    except OSError as error:
        yield problem(
            f"FALCON_HOME {home} cannot be written: {error.strerror or error}", "fix that, or set FALCON_HOME"
        )
    else:
        yield ok(f"{home} can be written" if there == home else f"{home} is created by the first command that needs it")
        if there == home:
            runs_as_other = os.geteuid() == 0 and context.settings.database_url is None
            yield judge_openness(home, home.stat().st_mode, runs_as_other=runs_as_other)


def judge_openness(home: Path, mode: int, *, runs_as_other: bool) -> Diagnosis:
    """Judges the access of other users to FALCON_HOME; ``runs_as_other``: the embedded PostgreSQL has its own user."""
    private = "run falcon as another user than root, or set FALCON_DATABASE_URL; then: " if runs_as_other else ""
    fix = f"{private}chmod o= {shlex.quote(str(home))}"
    if mode & stat.S_IWOTH:
        return problem(f"every user of this machine can write into {home}, and replace what runs execute", fix)
    if mode & (stat.S_IROTH | stat.S_IXOTH):
        return warning(f"every user of this machine can enter {home}, where data of clusters may lie", fix)
    return ok(f"nobody but its owner and group can enter {home}")


def check_space(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the disks in use have free space, and are no fuller than the max_usage of their clusters."""
    disks: defaultdict[int, list[tuple[str, Path]]] = defaultdict(list)
    for name, place in _places(context):
        there = _nearest(place)
        disks[there.stat().st_dev].append((name, there))
    for places in disks.values():
        found = os.statvfs(places[0][1])
        names = list(dict.fromkeys(name for name, _ in places))
        files = found.f_favail if found.f_files else None
        yield judge_space(names, found.f_bavail * found.f_frsize, files)
    yield from _usage(context)


def _usage(context: CheckContext) -> Iterator[Diagnosis]:
    files, home, store = files_on(fsspec.filesystem("file")), context.settings.home, context.entities_if_sound()
    for cluster in store.clusters.values() if store else ():
        limit = cluster.interfaces.write.max_percent
        for endpoint in cluster.interfaces.write.volumes if limit else ():
            folder = _folder(endpoint, home)
            space = files.space(str(_nearest(folder)))
            if limit and space:
                yield judge_usage(cluster.name, space, limit, _at(folder, cluster))


def judge_usage(cluster: str, space: Space, limit: int, at: str = "") -> Diagnosis:
    """Judges how full the disk of a cluster is; ``limit`` in percent, ``at`` says which of its volumes it is."""
    what = f"the disk of cluster {cluster!r}{at} is {space.percent}% full"
    if not space.excess(limit):
        return ok(f"{what}, {limit}% are allowed (max_usage)")
    plan = f"falcon retention plan --cluster {cluster}"
    return warning(f"{what}, more than {limit}% (max_usage)", f"see with {plan} what goes; else free some space")


def _places(context: CheckContext) -> Iterator[tuple[str, Path]]:
    home = context.settings.home
    yield "FALCON_HOME", home
    store = context.entities_if_sound()
    for cluster in store.clusters.values() if store else ():
        for endpoint in filter(is_mounted, cluster.interfaces.write.volumes):
            folder = _folder(endpoint, home)
            yield f"cluster {cluster.name!r}{_at(folder, cluster)}", folder
    try:
        database = context.database()
    except SettingsError:
        return
    if database is not None and database.data is not None:
        yield "PostgreSQL", database.data


def _folder(endpoint: str, home: Path) -> Path:
    return Path(store_url(endpoint, home)[len("file://") :])


def _at(folder: Path, cluster: Cluster) -> str:
    """Returns words that tell one volume from the others."""
    return f" at {folder}" if cluster.interfaces.write.endpoints else ""


def _nearest(path: Path) -> Path:
    """Returns the path, or its nearest existing parent."""
    return next(one for one in (path, *path.parents) if one.exists())


def judge_space(names: Sequence[str], free: int, files: int | None) -> Diagnosis:
    """Judges the free bytes and files of a disk; ``files`` None: the file system sets no limit."""
    what = f"the disk of {', '.join(names)}"
    if files == 0:
        return problem(f"{what} has room for no more files", "remove some, or use another disk")
    said = f"{what} has {_size(free)} free"
    if free < NEEDED_BYTES:
        return problem(f"{said}, {_size(NEEDED_BYTES)} are needed", "free some space, or use another disk")
    if free < SCARCE_BYTES:
        return warning(f"{said} only", "free some space soon")
    return ok(said)


def _size(number: int) -> str:
    return f"{number / (1 << 30):.0f} GiB" if number >= 10 << 30 else f"{number >> 20} MiB"
