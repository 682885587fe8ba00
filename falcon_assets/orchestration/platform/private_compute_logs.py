"""The former name of :class:`falcon_assets.dagster_instance.PrivateComputeLogManager`."""

from __future__ import annotations

from falcon_assets.dagster_instance import PrivateComputeLogManager

__all__ = ["PrivateComputeLogManager"]
