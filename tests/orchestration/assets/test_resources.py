"""The Spark resource of a cluster, which Dagster's UI shows to everybody."""

from __future__ import annotations

import dagster as dg

from falcon_assets.instances.spark_resource import spark_resources
from falcon_assets.settings import Settings
from tests.builders import make_cluster

KEY, SECRET = "spark.hadoop.fs.s3a.secret.key", "hush"
OPTIONS = {"secret": SECRET, "key": {"env": "NOWHERE"}}


def test_the_ui_shows_no_secret_and_assets_have_it(settings: Settings) -> None:
    cluster = make_cluster(properties={KEY: SECRET, "spark.sql.shuffle.partitions": "3"}, storage_options=OPTIONS)
    resources = spark_resources([cluster], settings.home, settings.environ)
    had = []

    @dg.asset(required_resource_keys={"spark__primary"})
    def mine(context) -> None:  # Dagster cannot resolve postponed annotations
        had.append(context.resources.spark__primary.cluster)

    repository = dg.Definitions(assets=[mine], resources=resources).get_repository_def()
    shown = repository.get_top_level_resources()["spark__primary"].config_schema.default_value
    assert shown["spark_config"][KEY] == "*****"
    assert shown["spark_config"]["spark.sql.shuffle.partitions"] == "3"
    assert SECRET not in repr(shown)
    with dg.DagsterInstance.ephemeral() as instance:
        assert dg.materialize([mine], resources=resources, instance=instance).success
    assert had == [cluster]
