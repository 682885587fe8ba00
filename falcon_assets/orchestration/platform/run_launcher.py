"""The former name of :class:`falcon_assets.dagster_instance.WarmRunLauncher`."""

from __future__ import annotations

from falcon_assets.dagster_instance import WarmRunLauncher

__all__ = ["WarmRunLauncher"]
