"""Classes that ``dagster.yaml`` names: the storage, the run launcher and the compute logs of an installation."""

from __future__ import annotations

from falcon_assets.history.platform.instance_storage import FalconStorage
from falcon_assets.history.platform.private_compute_logs import PrivateComputeLogManager
from falcon_assets.history.platform.run_launcher import WarmRunLauncher

__all__ = ["FalconStorage", "PrivateComputeLogManager", "WarmRunLauncher"]
