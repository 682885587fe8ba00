"""Files ``dagster.yaml`` of earlier versions go on."""

from __future__ import annotations

import importlib

import pytest

from falcon_assets import dagster_instance


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("instance_storage", "FalconStorage"),
        ("private_compute_logs", "PrivateComputeLogManager"),
        ("run_launcher", "WarmRunLauncher"),
    ],
)
def test_what_a_file_of_before_names_is_what_it_is_now(module: str, name: str) -> None:
    former = importlib.import_module(f"falcon_assets.orchestration.platform.{module}")
    assert getattr(former, name) is getattr(dagster_instance, name)
