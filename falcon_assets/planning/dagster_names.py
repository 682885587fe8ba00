"""What entities are called in Dagster, whose names have no ``-``: two names can meet in one (``a-b`` and ``a_b``).

Definitions in which they do are refused: see :mod:`falcon_assets.catalog.checks.names`.
"""

from __future__ import annotations

import re

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")


def identifier(name: str) -> str:
    """A name in Dagster's spelling: every other character is written ``_``."""
    return _NOT_IDENTIFIER.sub("_", name)


def op_name(whose: str, work: str) -> str:
    """The name of an op on a cluster: ``cluster__work``; of sensors too, those of a pipeline: ``pipeline__work``."""
    return identifier(f"{whose}__{work}")


def job_name(op: str) -> str:
    """The name of the job of an op: its own, with ``_job`` behind."""
    return f"{op}_job"


def replication_work(feed: str) -> str:
    """What the op and the job are named after that copy a feed."""
    return f"{feed}__replication"


def sla_op_name(cluster: str, number: int) -> str:
    """The name of an op that evaluates checks of SLAs; longer than a process can be named, so that none is alike."""
    return identifier(f"{cluster}_asset_checks_of_all_service_level_agreements_{number}")
