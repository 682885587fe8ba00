"""The tables of the ledger, in the PostgreSQL schema ``falcon``.

Everything but ``entity_status``, ``reruns``, ``evictions``, ``collected``, ``passes``, ``incomplete``, ``looks``,
``served``, ``source_problems``, ``clock``, ``daemon``, ``audit``, ``answered_requests``, ``data_roots``,
``executors``, ``version_lifecycle``, ``quality_attempts``, SLAs, notifications, logins, the journal of colos and the
versions of definitions is a projection of Dagster's history: ``falcon ledger rebuild`` makes it anew.
"""

from __future__ import annotations

from falcon_assets.history.tables.colos import COLO_WANTED, COLOS_READ
from falcon_assets.history.tables.completeness import COMPLETENESS, REPORTED_PARTS
from falcon_assets.history.tables.definitions import (
    ANSWERED_REQUESTS,
    AUDIT,
    DEFINITION_TREES,
    DEFINITION_VERSIONS,
    FILE_CONTENTS,
    WORKFLOW_FILES,
)
from falcon_assets.history.tables.executors import EXECUTORS
from falcon_assets.history.tables.instances import (
    CONSUMED,
    FEED_INSTANCES,
    FOLD,
    OPEN,
    PROCESS_INSTANCES,
    PUSHED,
    TOTALS,
)
from falcon_assets.history.tables.ledger_schema import METADATA, SCHEMA
from falcon_assets.history.tables.logins import API_TOKENS, LOCAL_USERS, LOGIN_ATTEMPTS, SESSIONS
from falcon_assets.history.tables.notifications import (
    NOTIFICATION_EVENTS,
    NOTIFICATION_RECEIVERS,
    NOTIFICATIONS,
    NOTIFIED,
)
from falcon_assets.history.tables.scheduling import (
    CLOCK,
    COLLECTED,
    DAEMON,
    DATA_ROOTS,
    ENTITY_STATUS,
    EVICTIONS,
    INCOMPLETE,
    LOOKS,
    PASSES,
    PROGRESS,
    RERUNS,
    ROLLUP_PROGRESS,
    SERVED,
    SOURCE_PROBLEMS,
)
from falcon_assets.history.tables.sla import SLA_BREACHES, SLA_EVALUATIONS, SLA_PROGRESS, SLA_TOTALS
from falcon_assets.history.tables.transfers import DELIVERIES, TRANSFERS
from falcon_assets.history.tables.versions import (
    DATA_VERSIONS,
    KEPT_VERSIONS,
    QUALITY_ATTEMPTS,
    QUALITY_HELD,
    QUALITY_VERDICTS,
    VERSION_COLUMNS,
    VERSION_EDGES,
    VERSION_LIFECYCLE,
)

__all__ = [
    "ANSWERED_REQUESTS",
    "API_TOKENS",
    "AUDIT",
    "CLOCK",
    "COLLECTED",
    "COLOS_READ",
    "COLO_WANTED",
    "COMPLETENESS",
    "CONSUMED",
    "DAEMON",
    "DATA_ROOTS",
    "DATA_VERSIONS",
    "DEFINITION_TREES",
    "DEFINITION_VERSIONS",
    "DELIVERIES",
    "ENTITY_STATUS",
    "EVICTIONS",
    "EXECUTORS",
    "FEED_INSTANCES",
    "FILE_CONTENTS",
    "FOLD",
    "INCOMPLETE",
    "KEPT_VERSIONS",
    "LOCAL_USERS",
    "LOGIN_ATTEMPTS",
    "LOOKS",
    "METADATA",
    "NOTIFICATIONS",
    "NOTIFICATION_EVENTS",
    "NOTIFICATION_RECEIVERS",
    "NOTIFIED",
    "OPEN",
    "PASSES",
    "PROCESS_INSTANCES",
    "PROGRESS",
    "PROJECTION",
    "PUSHED",
    "QUALITY_ATTEMPTS",
    "QUALITY_HELD",
    "QUALITY_VERDICTS",
    "REPORTED_PARTS",
    "RERUNS",
    "ROLLUP_PROGRESS",
    "SCHEMA",
    "SERVED",
    "SESSIONS",
    "SLA_BREACHES",
    "SLA_EVALUATIONS",
    "SLA_PROGRESS",
    "SLA_TOTALS",
    "SOURCE_PROBLEMS",
    "TOTALS",
    "TRANSFERS",
    "VERSION_COLUMNS",
    "VERSION_EDGES",
    "VERSION_LIFECYCLE",
    "WORKFLOW_FILES",
]

PROJECTION = (
    FEED_INSTANCES,
    PROCESS_INSTANCES,
    CONSUMED,
    DATA_VERSIONS,
    KEPT_VERSIONS,
    VERSION_EDGES,
    VERSION_COLUMNS,
    PUSHED,
    FOLD,
    PROGRESS,
    TOTALS,
    QUALITY_VERDICTS,
    QUALITY_HELD,
    REPORTED_PARTS,
    COMPLETENESS,
    TRANSFERS,
    DELIVERIES,
)
