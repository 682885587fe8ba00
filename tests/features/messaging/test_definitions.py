"""Endpoints, options and filters of brokers in definitions: what is wrong is said with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.model.cluster import MessagingInterface
from falcon_assets.model.event_kind import EventKind
from tests.builders import cluster_yaml

PAGE = Path(__file__).parents[3] / "docs/reference/cloudevents.md"


def problems(tmp_path: Path, **messaging: object) -> str:
    interfaces = yaml.safe_load(cluster_yaml())["interfaces"]
    (tmp_path / "all.yaml").write_text(cluster_yaml(interfaces={**interfaces, "messaging": messaging}))
    with pytest.raises(InvalidDefinitionsError) as raised:
        load_entities(tmp_path)
    return str(raised.value)


@pytest.mark.parametrize(
    ("endpoint", "parts"),
    [
        ("kafka://h:9092/t", {"brokers": "h:9092", "topic": "t"}),
        ("kafka://h:9092,i:9093/a.b-c_d", {"brokers": "h:9092,i:9093", "topic": "a.b-c_d"}),
        ("amqp://h/%2F/x", {"host": "h", "vhost": "%2F", "exchange": "x"}),
        ("amqps://h:5671/v/x", {"host": "h", "port": "5671", "vhost": "v", "exchange": "x"}),
        ("https://h/path?q=1", {}),
        ("http://127.0.0.1:8080", {}),
    ],
)
def test_an_endpoint_names_a_broker_and_what_is_in_it(endpoint: str, parts: dict[str, str]) -> None:
    assert MessagingInterface(endpoint=endpoint).parts == parts


@pytest.mark.parametrize(
    "endpoint",
    [
        *("kafka://h/t", "kafka://h:9092", "kafka://h:9092/a b", "kafka://u:p@h:9092/t", "amqp://h", "amqp://h/x"),
        *("amqp://u:hushhush@h/v/x", "https://u:hushhush@h/", "tcp://mq:61616?daemon=true", "h:9092"),
    ],
)
def test_other_endpoints_are_wrong_and_passwords_in_them_are_not_shown(tmp_path: Path, endpoint: str) -> None:
    said = problems(tmp_path, endpoint=endpoint)
    assert "all.yaml:" in said
    assert "is not a messaging endpoint: write kafka://host:port/topic" in said
    assert "hushhush" not in said


def test_an_entity_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    said = problems(tmp_path, endpoint="https://h/", entities=["raw"])
    assert "there is no feed or process 'raw'" in said


def test_a_client_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falcon_assets.features.messaging.broker.find_spec", lambda _: None)
    said = problems(tmp_path, endpoint="kafka://h:1/t", entities=["raw"])
    assert "events cannot be published to kafka:// from here: pip install 'falcon-assets[kafka]'" in said


def test_each_transition_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [one.value for one in EventKind if f"`{one.value}`" not in page] == []
