"""What data is called, as OpenLineage's specification of names says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_cluster, make_feed

HOME = Path("/home/me")


@pytest.mark.parametrize(
    ("endpoint", "path", "namespace", "name"),
    [
        ("data/primary", "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}", "file", "/home/me/data/primary/raw"),
        ("file:///data", "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", "file", "/data/raw"),
        ("s3://lake", "/raw/ds=${YEAR}-${MONTH}-${DAY}/hour=${HOUR}", "s3://lake", "raw"),
        ("s3a://lake/below", "/raw/${YEAR}${MONTH}${DAY}${HOUR}/parts", "s3://lake", "below/raw/parts"),
        ("s3://lake", "/a/orders-${YEAR}${MONTH}${DAY}${HOUR}", "s3://lake", "a/orders"),
        ("s3://lake", "/a/items-${YEAR}${MONTH}${DAY}${HOUR}", "s3://lake", "a/items"),
        ("s3://lake", "/${YEAR}${MONTH}${DAY}${HOUR}", "s3://lake", "/"),
        ("s3://lake", "/a/x=1/ü-ber/${YEAR}${MONTH}${DAY}${HOUR}", "s3://lake", "a/x=1/ü-ber"),
        ("gs://lake", "/raw/${YEAR}${MONTH}${DAY}${HOUR}", "gs://lake", "raw"),
        ("hdfs://name:9000/lake", "/raw/${YEAR}${MONTH}${DAY}${HOUR}", "hdfs://name:9000", "/lake/raw"),
        ("hdfs://name", "/raw/${YEAR}${MONTH}${DAY}${HOUR}", "hdfs://name:8020", "/raw"),
        (
            "abfs://box@store.dfs.core.windows.net",
            "/raw/${YEAR}${MONTH}${DAY}${HOUR}",
            "abfss://box@store.dfs.core.windows.net",
            "raw",
        ),
        ("data", "s3://other/raw/${YEAR}${MONTH}${DAY}${HOUR}/x", "s3://other", "raw/x"),
        ("memory://", "/raw/${YEAR}${MONTH}${DAY}${HOUR}", "memory://", "/raw"),
    ],
)
def test_files(endpoint: str, path: str, namespace: str, name: str) -> None:
    from falcon_assets.features.openlineage.naming import DatasetName, dataset_of

    interfaces = {"write": {"endpoint": endpoint}, "execute": {"endpoint": "local"}}
    feed = make_feed(locations={"data": path})
    assert dataset_of(feed, make_cluster(interfaces=interfaces), HOME) == DatasetName(namespace, name)


@pytest.mark.parametrize(
    ("options", "namespace"),
    [
        ({"account_name": "store"}, "abfss://box@store.dfs.core.windows.net"),
        ({"account_name": {"env": "ACCOUNT"}}, "abfs://box"),
    ],
)
def test_the_account_of_azure(options: dict[str, Any], namespace: str) -> None:
    from falcon_assets.features.openlineage.naming import dataset_of

    interfaces = {"write": {"endpoint": "abfs://box"}, "execute": {"endpoint": "local"}}
    cluster = make_cluster(interfaces=interfaces, storage_options=options)
    assert dataset_of(make_feed(), cluster, HOME).namespace == namespace


@pytest.mark.parametrize(
    ("registry", "namespace", "name"),
    [
        ("thrift://meta:9083", "hive://meta:9083", "sales.orders"),
        ("iceberg+postgresql://me@db:5432/lake#main", "iceberg+postgresql://db:5432/lake", "main.sales.orders"),
        ("iceberg+https://rest/catalog", "iceberg+https://rest/catalog", "sales.orders"),
    ],
)
def test_tables(registry: str, namespace: str, name: str) -> None:
    from falcon_assets.features.openlineage.naming import DatasetName, dataset_of

    interfaces = {
        "write": {"endpoint": "data"},
        "execute": {"endpoint": "local"},
        "registry": {"endpoint": registry},
    }
    uri = "catalog:sales:orders#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"
    feed = make_feed(locations=None, table={"uri": uri}, format="parquet", availability_flag=None)
    assert dataset_of(feed, make_cluster(interfaces=interfaces), HOME) == DatasetName(namespace, name)


def test_credentials_are_left_out() -> None:
    from falcon_assets.features.openlineage.naming import DatasetName, dataset_at

    assert dataset_at("s3://key:secret@lake/x") == DatasetName("s3://lake", "x")
    assert dataset_at("/archive/x") == DatasetName("file", "/archive/x")
