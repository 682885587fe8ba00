from __future__ import annotations

import platform

import pytest

from falcon_assets.history.platform.setup_fingerprint import setup_fingerprint
from falcon_assets.settings import load_settings

ENVIRON = {"FALCON_HOME": "/data/falcon", "LAKE_KEY": "k"}


def of(**environ: str) -> str:
    return setup_fingerprint(load_settings(ENVIRON | environ))


def test_processes_set_up_alike_on_one_machine_have_one_fingerprint() -> None:
    assert of(PWD="/elsewhere", DAGSTER_HOME="/elsewhere") == of()
    assert of(LAKE_KEY="other") != of()


def test_another_machine_with_the_same_folders_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    here = of()
    monkeypatch.setattr(platform, "node", lambda: "another")
    assert of() != here
