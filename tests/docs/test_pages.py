"""The commands of pages that need no webserver and no Spark, page by page, with the entities of the demo."""

from __future__ import annotations

import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from examples.flights.landing import land
from falcon_assets import api
from falcon_assets.catalog.store import load_entities
from falcon_assets.model.instant import parse_instant
from falcon_assets.settings import Settings, load_settings
from tests.docs.pages import Block, page, run_blocks
from tests.docs.programs import running
from tests.examples.sandbox import copy_demo
from tests.processes import free_port, listens
from tests.waiting import wait_until

pytestmark = pytest.mark.soak  # a minute and a half of commands

NOW = "2013-01-02T14:00Z"
RUN = {
    "docs/concepts/states.md": ["daily-delays", "SUSPENDED"],
    "docs/concepts/ledger.md": ["the ledger is rebuilt", "up to date"],
    "docs/guides/entities.md": [
        "is needed by",
        "raw-weather on primary: data of 2013-01-02T03:00Z",
        "# From the harbour master.",
    ],
    "docs/guides/instances.md": ["daily-delays", "WAITING"],
    "docs/guides/triage.md": [
        "raw-flights 2013-01-01T00:00Z on primary MISSING: has not come to ",
        ": 1 d 10 h late by its SLA (high: hours(4))",
        "... and 23 more like this one, the last is 2013-01-01T23:00Z",
        "fix: falcon instance collect raw-flights --start 2013-01-01T00:00Z --end 2013-01-01T23:00Z --cluster primary",
        "is there at ",
        "raw-flights 2013-01-02T12:00Z on primary AVAILABLE",
    ],
    "docs/guides/secrets.md": ['{encrypted: "v1:', "has the customer key: keep it with the definitions"],
    "docs/guides/running.md": ["0 did not"],
    "docs/guides/retention.md": ["raw-flights"],
    "docs/guides/from-falcon.md": ["2 entities imported into from-falcon"],
    "docs/guides/your-project.md": [],
    "docs/reference/entities.md": ["no problems"],
}
"""Page -> some of what its commands print, which must all end well."""
OPERATIONS = "docs/guides/operations-api.md"
SHOWN = [
    "12 entities",
    "+frequency: hours(2)",
    "True ['updated']",
    "['raw-weather', 'raw-weather']",
    "there is no file and no entity 'nothing'",
    "may not act for 'somebody'",
    "schedule denied",
]
"""Some of what its program prints."""
LANDING = "Find old data"
DEPLOYMENT = "docs/guides/deployment.md"


@pytest.fixture(scope="module")
def project(checkout: Path, settings: Settings) -> Path:
    """With four hours of what ``make demo`` lands."""
    store = load_entities(copy_demo(checkout))
    assert all(land(store, settings, parse_instant(NOW) - timedelta(hours=4), parse_instant(NOW) - timedelta(hours=1)))
    return checkout


@pytest.fixture(scope="module")
def then(environ: dict[str, str]) -> dict[str, str]:
    """A reader in 2013."""
    return {**environ, "FALCON_CLOCK": NOW}


@pytest.mark.parametrize("name", RUN)
def test_commands_of(name: str, project: Path, then: dict[str, str]) -> None:
    shown = run_blocks(page(name), project, then)
    assert [part for part in RUN[name] if part not in shown] == []


def test_operations_from_python(project: Path, then: dict[str, str]) -> None:
    blocks = page(OPERATIONS)
    program = "\n".join(block.text for block in blocks)
    own = {**then, "FALCON_SUPERUSERS": load_settings().user, "FALCON_WEBSERVER_URL": ""}
    done = subprocess.run(["python", "-c", program], cwd=project, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [part for part in SHOWN if part not in done.stdout] == []
    assert [name for name in api.__all__ if not re.search(rf"\b{name}\b", program) and name != "Installation"] == []


def test_old_data(project: Path, then: dict[str, str]) -> None:
    blocks = [block for block in page("docs/guides/landing.md") if block.heading == LANDING]
    assert "4 " in run_blocks(blocks, project, then)


def test_a_code_location_per_colo(project: Path, then: dict[str, str], tmp_path: Path) -> None:
    """As the page says it, on free ports: its servers, then what checks them."""
    ports = {shown: str(free_port()) for shown in ("4266", "4267")}

    def on_free_ports(text: str) -> str:
        return re.sub("|".join(ports), lambda match: ports[match[0]], text)

    workspace, servers, check = _by_kind([block for block in page(DEPLOYMENT) if block.language in ("yaml", "bash")])
    own = {**then, "DAGSTER_HOME": str(project)}
    with running(tmp_path / "servers.log", "bash", "-c", on_free_ports(servers.text) + "wait", cwd=project, env=own):
        for port in ports.values():
            wait_until(lambda port=port: listens(int(port)), 120, "a code server")
        moved = Block(*(on_free_ports(part) for part in vars(workspace).values()))
        shown = run_blocks([moved, check], project, own)
    for colo in ("east", "west"):
        assert f"Validation successful for code location {colo}." in shown


def _by_kind(blocks: list[Block]) -> list[Block]:
    """The workspace, the servers, what checks them."""
    return sorted(blocks, key=lambda block: (block.language != "yaml", "&" not in block.text))
