"""Alembic's entry point: migrates the schema ``falcon``; the connection is given."""

from __future__ import annotations

from alembic import context

from falcon_assets.history.tables import METADATA, SCHEMA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table_schema=SCHEMA,
    include_schemas=True,
)
with context.begin_transaction():
    context.run_migrations()
