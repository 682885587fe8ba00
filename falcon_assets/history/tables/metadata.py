"""Schema and types of the ledger's tables."""

from __future__ import annotations

from sqlalchemy import DateTime, MetaData

SCHEMA = "falcon"
METADATA = MetaData(schema=SCHEMA)
INSTANT = DateTime(timezone=True)
