"""How many ticks may wait: each needs a thread of its code server, and one of the daemon."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from dagster._cli.api import grpc_command
from dagster._cli.code_server import start_command

from falcon_assets.history.dagster_internals import server_threads
from falcon_assets.history.dagster_internals.server_threads import make_room, waiting_ticks
from falcon_assets.settings import CODE_SERVER_THREADS


@pytest.mark.parametrize(
    ("environ", "sensors", "expected"),
    [
        pytest.param([64, 64], {"use_threads": True, "num_workers": 32}, 28, id="ours"),
        pytest.param([64, 64], {"use_threads": True, "num_workers": 8}, 4, id="of an earlier dagster.yaml"),
        pytest.param([None, None], {"use_threads": True, "num_workers": 32}, 3, id="a server that somebody started"),
        pytest.param([64, 64], {}, 1, id="one after the other"),
    ],
)
def test_ticks_wait_where_there_is_room(
    environ: list[Any], sensors: dict[str, Any], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_threads, "_AT_START", environ)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    instance: Any = SimpleNamespace(get_sensor_settings=lambda: sensors)
    assert waiting_ticks(instance) == expected


def test_code_servers_are_started_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CODE_SERVER_THREADS:
        monkeypatch.delenv(name, raising=False)
    make_room()
    options = [one for command in (grpc_command, start_command) for one in command.params if one.name == "max_workers"]
    assert {one.envvar: one.resolve_envvar_value(None) for one in options} == dict.fromkeys(  # type: ignore[arg-type]
        CODE_SERVER_THREADS, "64"
    )
