"""Whatever is sent by the description of the interface, the server has an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error

from falcon_assets.settings import Settings
from falcon_assets.surface.rest.endpoints import endpoints
from falcon_assets.surface.rest.openapi import PREFIX, openapi
from falcon_assets.surface.served import open_served
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.surface.rest.servers import Client, serving

pytestmark = pytest.mark.soak
SLOW = {"doctor", "admin-status", "instance-wait", "ledger-rebuild", "events-tail"}
"""What looks at everything, or waits: it is asked a few times only."""
DESCRIBED = schemathesis.openapi.from_dict(openapi())


@pytest.fixture(scope="module")
def root(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Client]:
    entities = cluster_yaml("primary") + feed_yaml("raw") + feed_yaml("made")
    write_entities({"all.yaml": entities + process_yaml("make", "raw", "made"), "a.sql": "SELECT 1"})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", "2013-01-01T06:30Z")
        environment.setenv("FALCON_WEBSERVER_URL", "")
        with open_served(seconds=60) as served, serving(served) as client:
            yield client


@pytest.mark.parametrize("name", [one.name for one in endpoints()])
def test_no_request_is_a_fault_of_the_server(root: Client, name: str) -> None:
    operation = DESCRIBED.find_operation_by_id(name)

    @settings(
        max_examples=3 if name in SLOW else 25,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: schemathesis.Case[Any]) -> None:
        answer = case.call(base_url=f"{root.url}{PREFIX}", headers=root.headers, timeout=120)
        case.validate_response(answer, checks=[not_a_server_error])
        assert answer.status_code < 500 or "cannot be reached" in answer.text, answer.text
        assert "Traceback" not in answer.text

    ask()
