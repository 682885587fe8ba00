"""What a look at the database shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from falcon_assets.history.dagster_internals.daemon import DaemonHealth


@dataclass(frozen=True)
class DatabaseFacts:
    """How the database is.

    Attributes:
        url: Where it is, with the password.
        version: Of PostgreSQL, 150004 for 15.4.
        is_read_only: Whether nothing can be written, as on a standby.
        is_pooled: Whether something between here and PostgreSQL shares its connections out.
        loses_sessions: Whether a session is another one from statement to statement.
        refuses_options: What it says to parameters of a connection that the ledger sets; "": nothing.
        ledger: The revision of the ledger's tables; None: there are none.
        ledger_head: The one that this version of the package needs.
        has_dagster: Whether Dagster has its tables there.
        daemons: The parts of Dagster's daemon that have given signs of life.
        ahead: By how much its clock is ahead of this machine's, about.
        newest_event: When Dagster wrote down the newest event, in real time; None: there is none.
        other_clock: Why this process may not work there, which goes by another falcon clock; "": it may.
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
    ahead: timedelta
    newest_event: datetime | None
    other_clock: str
    data: Path | None
