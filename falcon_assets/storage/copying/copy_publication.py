"""Publishes what was copied: all parts of an instance at once, so that no reader sees one without the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_records import true_records
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyTarget, part_lock
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion


def publish_if_complete(key: str, targets: Sequence[CopyTarget]) -> DataVersion | None:
    """Publishes copies since the last publication, or returns the present version; None: a part is missing.

    After a crash the first of ``targets``, all sources, is copied again.
    """
    any_of = targets[0]
    any_of.recover(key)
    ready = [target for target in targets if target.finished() is not None]
    if not any_of.is_published and not all(target.has_come() for target in targets):
        return None
    if ready:
        try:
            return publish_copies(key, ready)
        except StorageError:
            # Two sources that finish in one moment both find the instance complete: one of them is first.
            if any(target.fresh().finished() is not None for target in ready) or not any_of.is_published:
                raise
    return any_of.version()


def publish_copies(key: str, targets: Sequence[CopyTarget]) -> DataVersion:
    """Publishes finished parts of an instance; the files of other sources stay unchanged.

    On StorageError a published instance is unchanged (on object stores: not available until this succeeds).
    """
    first = targets[0]
    with driver_explained(first.store.cluster.name, f"publish {first.output.path}"):
        return publish_parts(key, targets) or first.version()


def publish_parts(key: str, targets: Sequence[CopyTarget], flag: bytes = b"") -> DataVersion | None:
    """As :func:`publish_copies`, with a flag of that content; None if the version is not known without reading."""
    first = targets[0]
    with ExitStack() as held, driver_explained(first.store.cluster.name, f"publish {first.output.path}"):
        for target in sorted(targets, key=lambda target: target.source):  # two at once must not block each other
            held.enter_context(part_lock(target, f"{key}: source {target.source!r}"))
        published = first.published_files()
        parts = [_finished(target, key, published) for target in targets]
        version = first.publish(key, parts, published, flag)
        for part in parts:
            now = {**part.known, **part.copied}
            part.target.end(record for name, record in now.items() if name not in part.delete)
    return version


def _finished(target: CopyTarget, key: str, published: Mapping[str, ListedFile]) -> CopiedPart:
    finished = target.finished()
    if finished is None:
        raise StorageError(f"{key}: the part of source {target.source!r} is not copied yet")
    copied, delete = finished
    staged = target.staged_records()
    records = true_records(staged, {**published, **target.staged_files()})
    if changed := [name for name in copied if name not in records]:
        raise StorageError(f"{key}: {changed[0]} changed since it was copied from {target.source!r}: copy it again")
    known = true_records([*target.published_records(), *staged], published)
    return CopiedPart(target, frozenset(delete), {name: records[name] for name in copied}, known)
