"""What is secret by its name is hidden in every text, and nothing else is."""

from __future__ import annotations

import pytest

from falcon_assets.base.texts import hides
from falcon_assets.model.secret_values import is_secret, secret_properties, secrets_of, secrets_of_feed
from tests.builders import make_cluster, make_feed

SECRET = "jdbc.password db_password api_token API_KEY apikey db.pwd ssh.private-key smtp_passwd passphrase"
SETTINGS = "spark.hadoop.fs.s3a.secret.key fs.azure.account.key aws.access.key gcs_credentials"
OTHERS = "threshold primary_key key user pwd_file_less spark.sql.shuffle.partitions"


@pytest.mark.parametrize("key", f"{SECRET} {SETTINGS}".split())
def test_secret_names(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", OTHERS.split())
def test_other_names(key: str) -> None:
    assert not is_secret(key)


def test_short_secrets_are_whole_words_and_plain_words_are_none() -> None:
    hide = hides(["abc", "5", "true", "", "hunter2hunter2"])
    assert hide("abc abcd x=abc; 2013-05-05 true xhunter2hunter2y") == "***** abcd x=*****; 2013-05-05 true x*****y"


def test_secrets_of_a_cluster() -> None:
    cluster = make_cluster(
        storage_options={"key": {"env": "KEY"}, "client_kwargs": {"x": "plain-option"}},
        properties={"jdbc.password": "of the cluster", "threshold": "15"},
    )
    assert set(secrets_of(cluster, lambda one: {"KEY": "from the environment"}[one.env])) == {
        "of the cluster",
        "from the environment",
        "plain-option",
    }
    assert list(secret_properties({"a": "b"})) == []


def test_secrets_of_a_feed() -> None:
    own = {"secret": {"env": "SECRET"}, "client_kwargs": {"endpoint_url": "http://here", "x": "plain-option"}}
    on_it = {"name": "primary", "locations": {"storage_options": {"token": "there"}}}
    feed = make_feed(
        properties={"api_token": "of the feed", "threshold": "15"},
        options={"password": "of its format", "header": "true"},
        locations={"data": "s3://b/${YEAR}-${MONTH}-${DAY}-${HOUR}", "storage_options": own},
        clusters=[{**make_feed().clusters[0].model_dump(mode="json", exclude_none=True), **on_it}],
    )
    assert set(secrets_of_feed(feed, lambda one: {"SECRET": "from the environment"}[one.env])) == {
        *("of the feed", "of its format", "from the environment", "plain-option", "there")
    }
