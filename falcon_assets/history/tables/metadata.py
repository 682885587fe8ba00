"""What the tables of the ledger have in common."""

from __future__ import annotations

from sqlalchemy import DateTime, MetaData

SCHEMA = "falcon"
METADATA = MetaData(schema=SCHEMA)
INSTANT = DateTime(timezone=True)
