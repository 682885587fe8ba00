"""The former name of :class:`falcon_assets.dagster_instance.FalconStorage`."""

from __future__ import annotations

from falcon_assets.dagster_instance import FalconStorage

__all__ = ["FalconStorage"]
