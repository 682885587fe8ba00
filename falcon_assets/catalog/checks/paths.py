"""Where feeds lie: one path per instance, variables that exist, and no two feeds in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from falcon_assets.catalog.checks.templates import cluster_of, declared_templates, is_of_feed, resolved, templates_on
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.documents import KeyPath, key_path_text
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.model.template import Variable, value_of


def check_paths(definitions: Definitions) -> Iterator[Problem]:
    """Templates that are too coarse, unknown variables, shared or nested paths, and staging areas among data."""
    taken: dict[tuple[str, str], tuple[Declared[Feed], KeyPath]] = {}
    prefixes: dict[str, dict[str, str]] = {}
    for feed in definitions.feeds.values():
        for path, template in declared_templates(feed.entity):
            yield from _too_coarse(feed, path, template)
        for index, _, cluster in definitions.feed_clusters(feed):
            values = {**feed.entity.properties, **cluster.variables}
            for path, template in templates_on(feed.entity, index):
                unknown = list(_unknown_variables(feed, path, template, values, cluster))
                yield from unknown
                if unknown or is_of_feed(path, template):
                    continue
                where = cluster_of(feed.entity, path, cluster.name)
                place = (where, resolved(template, values))
                other, other_path = taken.setdefault(place, (feed, path))
                if (other, other_path) != (feed, path) and not _side_by_side(feed, path, other, other_path):
                    yield feed.problem(path, _shared(where, template, other, other_path))
                prefix = _prefix(place[1])
                if prefix:
                    prefixes.setdefault(where, {}).setdefault(prefix, feed.entity.name)
    yield from _inside_of_instances(taken)
    for declared in definitions.clusters.values():
        yield from _areas_among_data(declared, prefixes.get(declared.entity.name, {}))


def _too_coarse(feed: Declared[Feed], path: KeyPath, template: PathTemplate) -> Iterator[Problem]:
    missing = () if is_of_feed(path, template) else template.missing_for(feed.entity.frequency)
    if missing:
        names = ", ".join(f"${{{name}}}" for name in missing)
        message = f"coarser than the frequency {feed.entity.frequency}: instances would share a path without {names}"
        yield feed.problem(path, f"{template.text!r} is {message}")


def _unknown_variables(
    feed: Declared[Feed], path: KeyPath, template: PathTemplate, values: dict[str, str], cluster: Cluster
) -> Iterator[Problem]:
    known = {**dict.fromkeys(TIME_VARIABLES, ""), **values}
    for name in template.variables:
        try:
            value_of(template.text, Variable(name), known)
        except ExpressionError as error:
            yield feed.problem(path, f"{error} on cluster {cluster.name!r}")


def _prefix(place: str) -> str:
    """The folders above the first time variable: all that is in them is the feed's; nothing for a table."""
    return "" if place.startswith("catalog:") else place.partition("${")[0].rpartition("/")[0]


def _side_by_side(feed: Declared[Feed], path: KeyPath, other: Declared[Feed], other_path: KeyPath) -> bool:
    """Statistics and metadata of one feed may share a folder: they come and go together."""
    return feed is other and {path[-1], other_path[-1]} <= {"stats", "meta"}


def _shared(cluster: str, template: PathTemplate, other: Declared[Feed], other_path: KeyPath) -> str:
    return f"{template.text!r} is on cluster {cluster!r} the same path as {_declaration(other, other_path)}"


def _declaration(feed: Declared[Feed], path: KeyPath) -> str:
    return f"{key_path_text(path)} of feed {feed.entity.name!r} at {feed.document.position(path)}"


def _inside_of_instances(taken: Mapping[tuple[str, str], tuple[Declared[Feed], KeyPath]]) -> Iterator[Problem]:
    """What lies in the folder of another feed's instance is replaced and evicted with it."""
    for (cluster, place), (feed, path) in taken.items():
        steps = place.split("/")
        for depth in range(1, len(steps)):
            outer, outer_path = taken.get((cluster, "/".join(steps[:depth])), (feed, path))
            if outer is not feed and not place.startswith("catalog:"):
                where = f"on cluster {cluster!r} inside of the instances of {_declaration(outer, outer_path)}"
                yield feed.problem(path, f"{place!r} is {where}")


def _areas_among_data(declared: Declared[Cluster], prefixes: dict[str, str]) -> Iterator[Problem]:
    for area in ("staging", "working"):
        folder = "/".join(piece for piece in getattr(declared.entity.locations, area).split("/") if piece)
        for prefix, feed in prefixes.items():
            message = f"{folder!r} and {prefix!r}, where feed {feed!r} lies, must not be inside of each other"
            if f"{folder}/".startswith(f"{prefix}/") or f"{prefix}/".startswith(f"{folder}/"):
                yield declared.problem(("locations", area), message)
