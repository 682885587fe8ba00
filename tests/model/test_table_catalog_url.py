"""Endpoints of registries."""

from __future__ import annotations

import pytest

from falcon_assets.model.table_catalog_url import registry_problem, shown_registry

LEGAL = (
    "write thrift://host:port (a Hive Metastore), iceberg+postgresql://user@host/database#catalog "
    "(Iceberg in a database) or iceberg+https://host/path#warehouse (Iceberg's REST service)"
)


@pytest.mark.parametrize(
    "endpoint",
    [
        "thrift://hive:9083",
        "thrift://one:9083,thrift://two:9083",
        "iceberg+postgresql://etl@db:5432/lake#flights",
        "iceberg+postgresql://etl@/lake?host=/run/postgresql",
        "iceberg+https://catalog.example.com/api/catalog#flights",
        "iceberg+http://[::1]:8181",
    ],
)
def test_what_can_be_used(endpoint: str) -> None:
    assert registry_problem(endpoint) is None


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://hive:9083", f"'http' is not a registry of tables: {LEGAL}"),
        ("thrift://hive", f"'thrift' is not a registry of tables: {LEGAL}"),
        ("iceberg+ftp://catalog", f"'iceberg+ftp' is not a registry of tables: {LEGAL}"),
        ("iceberg+https:///lake", f"a host is missing: {LEGAL}"),
        *(
            (endpoint, "credentials must not stand here: name them in storage_options of the registry, as {env: NAME}")
            for endpoint in ("iceberg+https://me:secret@catalog/api", "iceberg+https://catalog?token=secret")
        ),
        ("iceberg+postgresql://etl@db", f"a database is missing: {LEGAL}"),
        (
            "iceberg+postgresql://etl:secret@db/lake",
            "a password must not stand here: use PGPASSWORD or the file .pgpass of PostgreSQL",
        ),
        ("iceberg+postgresql://[", f"it is not a URL: {LEGAL}"),
        ("iceberg+postgresql://etl@db:none/lake", f"it is not a URL: {LEGAL}"),
    ],
)
def test_what_cannot_is_told(endpoint: str, why: str) -> None:
    assert registry_problem(endpoint) == why


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("thrift://hive:9083", "thrift://hive:9083"),
        ("iceberg+postgresql://etl@db:5432/lake?sslmode=require#flights", "iceberg+postgresql://db:5432/lake"),
        ("iceberg+https://catalog/api#flights", "iceberg+https://catalog/api"),
    ],
)
def test_what_is_shown_names_no_users_and_options(endpoint: str, shown: str) -> None:
    assert shown_registry(endpoint) == shown
