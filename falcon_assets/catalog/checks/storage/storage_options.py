"""Options of file systems: those that hold further options, and those that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from falcon_assets.catalog.checks.storage.templates import LOCATIONS
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.validation import SECRET_RULES
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.catalog.yaml_files.secrets import SECRET_KEY
from falcon_assets.errors import Problem
from falcon_assets.model.feed import Feed, Locations


def check_storage_options(definitions: Definitions) -> Iterator[Problem]:
    """Mappings where fsspec takes none: it names those that it takes ``client_kwargs``, ``config_kwargs`` and so on."""
    for cluster in definitions.clusters.values():
        for name in _without_place(cluster.entity.storage_options):
            yield cluster.problem((SECRET_KEY, name), SECRET_RULES[True])
    for feed in definitions.feeds.values():
        for path, locations in _locations(feed):
            for name in _without_place(locations.storage_options or {}):
                yield feed.problem((*path, SECRET_KEY, name), SECRET_RULES[True])
            if locations.storage_options is not None and not _has_url(feed.entity, path):
                message = "no location is a whole URL, and all others take the options of the cluster"
                yield feed.problem((*path, SECRET_KEY), message, at_key=True)


def _without_place(options: Mapping[str, object]) -> Iterator[str]:
    return (name for name, value in options.items() if isinstance(value, dict) and not name.endswith("_kwargs"))


def _locations(feed: Declared[Feed]) -> Iterator[tuple[KeyPath, Locations]]:
    if feed.entity.locations is not None:
        yield ("locations",), feed.entity.locations
    for index, entry in enumerate(feed.entity.clusters):
        if entry.locations is not None:
            yield ("clusters", index, "locations"), entry.locations


def _has_url(feed: Feed, path: KeyPath) -> bool:
    """Whether the storage options of the locations at ``path`` open anything on one of the clusters in question."""
    entries = feed.clusters if len(path) == 1 else (feed.clusters[int(path[1])],)
    for entry in entries:
        in_force = feed.locations_on(entry.name)
        archive_to = entry.retention.archive_to if entry.retention else None
        templates = (archive_to, *(getattr(in_force, kind) for kind in LOCATIONS))
        if any(template is not None and template.is_url for template in templates):
            return True
    return False
