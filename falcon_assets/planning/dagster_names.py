"""Names of entities in Dagster, which allows no ``-``; the checks of definitions refuse those that become the same."""

from __future__ import annotations

import re

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")


def identifier(name: str) -> str:
    return _NOT_IDENTIFIER.sub("_", name)


def op_name(whose: str, work: str) -> str:
    return identifier(f"{whose}__{work}")


def source_collector(cluster: str) -> str:
    """Of a cluster of another colo; that colo's own collector has another name."""
    return op_name(cluster, "source_collector")


def job_name(op: str) -> str:
    return f"{op}_job"


def replication_work(feed: str) -> str:
    return f"{feed}__replication"


def compaction_work(feed: str) -> str:
    return f"{feed}__compaction"


def import_work(feed: str) -> str:
    return f"{feed}__import"


def export_work(feed: str, target: str) -> str:
    return f"{feed}__to__{target}"


def sla_op_name(cluster: str, number: int) -> str:
    """Longer than the name of a process may be, so that the two never collide."""
    return identifier(f"{cluster}_asset_checks_of_all_service_level_agreements_{number}")


def owner_name(name: str) -> str:
    """A user or a group as the owner of an asset: an e-mail address unchanged, any other name as a team."""
    return name if "@" in name else f"team:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}"
