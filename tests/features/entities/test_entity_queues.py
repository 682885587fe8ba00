"""Only users of a queue put processes into it, and the doctor finds those that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.doctor.all_checks import CHECKS
from falcon_assets.doctor.diagnosis import CheckContext
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, process_yaml
from tests.operations.rows import NOW


def of(queue: str, **more: object) -> str:
    return process_yaml("one", None, None, queue=queue, **more)


@pytest.fixture
def call(
    write_entities: Callable[[dict[str, str]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Submits or updates a process, whose definition is given."""
    root = write_entities({"a.yaml": cluster_yaml(), "a.sql": "SELECT 1"})
    (root / "processes/one.yaml").unlink(missing_ok=True)
    (tmp_path / "queues.yaml").write_text("open: {}\nours: {users: [ann]}\n")
    monkeypatch.setenv("FALCON_QUEUES", str(tmp_path / "queues.yaml"))
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")

    def change(operation: str, text: str) -> Result:
        (tmp_path / "p.yaml").write_text(text)
        return CliRunner().invoke(falcon, ["entity", operation, str(tmp_path / "p.yaml")])

    return change


def test_nobody_else_puts_a_process_into_a_queue(call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    me = load_settings().user
    denied = f"{me} may not put process 'one' into the queue 'ours', which is for ann"
    assert str(call("submit", of("ours", acl={"owner": "ann"})).exception) == denied
    assert call("submit", of("open")).exit_code == 0
    assert str(call("update", of("ours")).exception) == denied
    monkeypatch.setenv("FALCON_SUPERUSERS", me)
    assert call("update", of("ours", acl={"owner": "ann", "group": "wheel"})).exit_code == 0


def test_the_doctor_finds_processes_that_queues_refuse(call: Callable[..., Result]) -> None:
    def texts() -> list[str]:
        return [one.text for one in CHECKS["queues"](CheckContext(load_settings(), NOW))]

    assert texts() == ["0 processes are in queues"]
    assert call("submit", of("open")).exit_code == 0
    assert texts() == ["1 process is in queues"]
    assert call("update", of("nowhere")).exit_code == 0
    assert texts() == ["process 'one' waits for the queue nowhere, which FALCON_QUEUES does not have"]
