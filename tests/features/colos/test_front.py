"""The front of ``falcon serve`` as the one face of colos: it has no definitions and no code location of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from starlette.middleware import Middleware

from falcon_assets.surface.front.app import open_front
from falcon_assets.surface.rest.openapi import PREFIX
from tests.builders import feed_yaml, on
from tests.features.colos.worlds import World, lakes, said, world
from tests.surface.front.conftest import ByHeader, serving

__all__ = ["world"]


def test_a_front_needs_nothing_of_its_own(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.clean()
    (tmp_path / "dagster.yaml").write_text("")
    workspace = tmp_path / "workspace.yaml"
    workspace.write_text("load_from: []\n")
    monkeypatch.chdir(tmp_path)
    with open_front(world.settings, workspace, logins=[Middleware(ByHeader)]) as app, serving(app) as port:
        url, ann = f"http://127.0.0.1:{port}", {"x-who": "ann EDITOR"}
        body = {"definitions": lakes("east", "west") + feed_yaml("raw", on("west-lake"))}
        answer = requests.post(f"{url}{PREFIX}/entities", json=body, headers=ann, timeout=60)
        assert (answer.status_code, said(answer)) == (200, {"east": "done", "west": "done"}), answer.text
        listed = requests.get(f"{url}{PREFIX}/entities", headers=ann, timeout=60)
        assert listed.status_code == 200, listed.text
        assert sorted(one["name"] for one in listed.json()["items"]) == ["east-lake", "raw", "west-lake"]
        pages = requests.get(f"{url}/falcon/entities", headers=ann, timeout=60)
        assert (pages.status_code, "<td>west</td>" in pages.text) == (200, True), pages.text
        assert requests.get(f"{url}/healthz", timeout=60).status_code == 200
        assert requests.get(f"{url}{PREFIX}/admin:colos", headers=ann, timeout=60).json()["colos"][1]["problem"] == ""
