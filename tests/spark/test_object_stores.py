"""How Spark gets at object stores: through folders that it shares with the run, or by its own connector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.data.connectors import _has_classes, connector_settings, has_connector
from falcon_assets.compute.spark.sessions import session_for
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.objects.spark_urls import spark_url
from tests.builders import make_cluster
from tests.s3_server import ENVIRON, lake


@pytest.mark.parametrize(
    ("endpoint", "write", "shared"),
    [
        ("local[2]", "s3://lake/data", True),
        ("sc://127.0.0.1:15002", "s3://lake/data", True),
        ("sc://localhost:15002/;token=x", "s3://lake/data", False),
        ("sc://far:15002", "s3://lake/data", False),
        ("spark://127.0.0.1:7077", "s3://lake/data", True),
        ("spark://localhost:7077,far:7077", "s3://lake/data", False),
        ("yarn", "s3://lake/data", False),
        ("yarn", "file:///mnt/shared", True),
        ("sc://far:15002", "data/primary", True),
    ],
)
def test_who_shares_folders_with_a_run(endpoint: str, write: str, shared: bool) -> None:
    interfaces = {"write": {"endpoint": write}, "execute": {"endpoint": endpoint}}
    assert SparkExecutor(make_cluster(interfaces=interfaces), str).shares_folders is shared


S3A = "spark.hadoop.fs.s3a.bucket.lake."


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({}, {}, id="nothing declared: it looks into the environment of its own processes"),
        pytest.param(
            {"key": "K", "secret": "S", "token": "T", "use_listings_cache": False},
            {"access.key": "K", "secret.key": "S", "session.token": "T"},
            id="credentials",
        ),
        pytest.param(
            {"client_kwargs": {"endpoint_url": "http://127.0.0.1:9000", "region_name": "eu-central-1"}},
            {
                "endpoint": "http://127.0.0.1:9000",
                "path.style.access": "true",
                "connection.ssl.enabled": "false",
                "endpoint.region": "eu-central-1",
            },
            id="a server of one's own",
        ),
        pytest.param(
            {"endpoint_url": "https://s3.example.com", "anon": True},
            {
                "endpoint": "https://s3.example.com",
                "path.style.access": "true",
                "connection.ssl.enabled": "true",
                "aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
            },
            id="a public one",
        ),
    ],
)
def test_what_the_connector_is_told(options: dict[str, Any], told: dict[str, str]) -> None:
    found = connector_settings(("s3", "s3a"), "lake/data", options)
    assert found == {f"{S3A}{name}": value for name, value in told.items()}
    assert connector_settings(("gs", "gcs"), "lake/data", options) == {}


@pytest.mark.parametrize("scheme", ["s3a", "gs"])
def test_the_spark_of_pip_has_no_connector(any_cluster: Cluster, working: str, scheme: str) -> None:
    assert not has_connector(session_for(any_cluster, working), scheme)


def test_one_that_has_the_classes_is_recognised_without_network(spark: SparkSession) -> None:
    spark.conf.set("fs.gs.impl", "org.apache.hadoop.fs.ftp.FTPFileSystem")  # as good as any that wants a host
    try:
        assert _has_classes(spark, "gs")
    finally:
        spark.conf.unset("fs.gs.impl")


def test_what_has_no_connector_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ClusterStore(make_cluster(**lake("http://127.0.0.1:1")), tmp_path, ENVIRON)
    assert spark_url(store, "lake/data/x") == "s3a://lake/data/x"
    monkeypatch.setattr(store.fs, "protocol", ("abfs", "az", "abfss"))
    with pytest.raises(StorageError) as raised:
        spark_url(store, "lake/data/x")
    assert str(raised.value) == (
        "cluster 'lake': s3://lake is read and written through folders that Spark shares with this machine, and this "
        "Spark shares none: use local[N], the server of `falcon spark start`, or a write endpoint that is mounted on "
        "all machines"
    )
