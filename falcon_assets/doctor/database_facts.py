"""Facts about the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from falcon_assets.history.dagster_internals.daemon import DaemonHealth
    from falcon_assets.history.platform.active_daemon import Daemon


@dataclass(frozen=True)
class DatabaseFacts:
    """The state of the database.

    Attributes:
        url: With the password.
        version: Of PostgreSQL, 150004 for 15.4.
        is_pooled: Whether a pooler between here and PostgreSQL shares its connections.
        loses_sessions: Whether the session may change between statements.
        refuses_options: Its error for parameters of a connection that the ledger sets; "": none.
        ledger: The revision of the ledger's tables; None: there are none.
        ledger_head: The revision that this version of the package needs.
        candidates: The daemons of ``falcon serve``: the active one, and those that wait.
        ahead: Approximate lead of its clock over this machine's.
        newest_event: Of Dagster, in real time; None: there is none.
        other_clock: Why this process may not use it, as it has another falcon clock; "": it may.
        data: The folder of its data, where that is on this machine and known.
    """

    url: str = field(repr=False)
    version: int
    is_read_only: bool
    is_pooled: bool
    loses_sessions: bool
    refuses_options: str
    ledger: str | None
    ledger_head: str
    has_dagster: bool
    daemons: Sequence[DaemonHealth]
    candidates: Sequence[Daemon]
    ahead: timedelta
    newest_event: datetime | None
    other_clock: str
    data: Path | None
