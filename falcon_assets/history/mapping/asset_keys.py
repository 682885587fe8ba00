"""Asset keys, and labels in the spelling that Dagster allows."""

from __future__ import annotations

import re
from collections.abc import Mapping

import dagster as dg

from falcon_assets.model.shared import Acl
from falcon_assets.planning.dagster_names import identifier, owner_name
from falcon_assets.planning.workloads import Workload

_NOT_TAG = re.compile(r"[^A-Za-z0-9_.-]")
_TAG_LENGTH = 63


def asset_key(cluster: str, feed: str) -> dg.AssetKey:
    return dg.AssetKey([cluster, feed])


def workload_keys(workload: Workload) -> list[dg.AssetKey]:
    """Returns the keys of the workload's assets; events about instances are recorded on the first."""
    return [asset_key(workload.cluster, one) for one in workload.assets]


def group_name(groups: tuple[str, ...]) -> str | None:
    """Returns the first group in Dagster's spelling; None (Dagster's default group): there is none."""
    return identifier(groups[0]) if groups else None


def tags(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns labels in Dagster's spelling and length, with one namespace at most; the metadata has them whole."""
    return {"/".join(map(_tag, key.split("/", 1))): _tag(value) for key, value in labels.items()}


def _tag(text: str) -> str:
    return _NOT_TAG.sub("_", text)[:_TAG_LENGTH]


def owners(acl: Acl | None) -> list[str]:
    """Returns the owner and the group in Dagster's form: an e-mail address unchanged, any other name as a team."""
    names = [] if acl is None else dict.fromkeys((acl.owner, acl.group))
    return [owner_name(name) for name in names if name]
