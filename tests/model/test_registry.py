"""Endpoints of registries."""

from __future__ import annotations

import pytest

from falcon_assets.model.registry import registry_problem

LEGAL = (
    "write thrift://host:port (a Hive Metastore) or iceberg+postgresql://user@host/database#catalog "
    "(Iceberg in a database)"
)


@pytest.mark.parametrize(
    "endpoint",
    [
        "thrift://hive:9083",
        "thrift://one:9083,thrift://two:9083",
        "iceberg+postgresql://etl@db:5432/lake#flights",
        "iceberg+postgresql://etl@/lake?host=/run/postgresql",
    ],
)
def test_what_can_be_used(endpoint: str) -> None:
    assert registry_problem(endpoint) is None


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://hive:9083", f"'http' is no registry of tables: {LEGAL}"),
        ("thrift://hive", f"'thrift' is no registry of tables: {LEGAL}"),
        ("iceberg+https://catalog", f"'iceberg+https' is no registry of tables: {LEGAL}"),
        ("iceberg+postgresql://etl@db", f"a database is missing: {LEGAL}"),
        (
            "iceberg+postgresql://etl:secret@db/lake",
            "a password must not stand here: use PGPASSWORD or the file .pgpass of PostgreSQL",
        ),
        ("iceberg+postgresql://[", f"that is no URL: {LEGAL}"),
    ],
)
def test_what_cannot_is_told(endpoint: str, why: str) -> None:
    assert registry_problem(endpoint) == why
