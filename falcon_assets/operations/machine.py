"""Requirements on the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from falcon_assets.base.home import require_space
from falcon_assets.compute.spark.jvm import require_java


def require_machine(environ: Mapping[str, str], home: Path) -> None:
    """Raises SettingsError without Java for Spark, or disk space in FALCON_HOME."""
    require_java(environ)
    require_space(home)
