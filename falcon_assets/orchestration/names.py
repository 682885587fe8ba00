"""Entity names and labels in the spelling that Dagster allows."""

from __future__ import annotations

import re
from collections.abc import Mapping

import dagster as dg

from falcon_assets.model.process import Process
from falcon_assets.model.shared import Acl
from falcon_assets.planning.replication_process import Replication

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")
_NOT_TAG = re.compile(r"[^A-Za-z0-9_.-]")
_TAG_LENGTH = 63


def asset_key(cluster: str, feed: str) -> dg.AssetKey:
    """The key of a feed on a cluster: ``cluster/feed``, names as they are."""
    return dg.AssetKey([cluster, feed])


def op_name(cluster: str, process: str) -> str:
    """The name of the op of a process on a cluster: ``cluster__process``, every ``-`` written ``_``.

    Two processes can meet in one name (``a-b`` and ``a_b``); loading the definitions reports that.
    """
    return _NOT_IDENTIFIER.sub("_", f"{cluster}__{process}")


def work_name(process: Process) -> str:
    """What the op and the job of a process are named after; all replications of a feed to a cluster have one op."""
    return f"{process.feed}__replication" if isinstance(process, Replication) else process.name


def job_name(cluster: str, process: Process) -> str:
    """The name of the job of a process on a cluster: that of its op, with ``_job`` behind."""
    return f"{op_name(cluster, work_name(process))}_job"


def group_name(groups: tuple[str, ...]) -> str | None:
    """The asset group: the first group in Dagster's spelling, None (Dagster's default group) where there is none."""
    return _NOT_IDENTIFIER.sub("_", groups[0]) if groups else None


def tags(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels as Dagster tags: other characters become ``_`` and long ones are cut; the metadata keeps them whole.

    A key may have one namespace before a ``/``.
    """
    return {"/".join(map(_tag, key.split("/", 1))): _tag(value) for key, value in labels.items()}


def _tag(text: str) -> str:
    return _NOT_TAG.sub("_", text)[:_TAG_LENGTH]


def owners(acl: Acl | None) -> list[str]:
    """The owner as Dagster writes it: an e-mail address as it is, any other name as a team."""
    if acl is None:
        return []
    return [acl.owner if "@" in acl.owner else f"team:{_NOT_TAG.sub('_', acl.owner)}"]
