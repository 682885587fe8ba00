"""Is this machine ready?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from falcon_assets.base.home import require_space
from falcon_assets.compute.spark.jvm import require_java


def require_machine(environ: Mapping[str, str], home: Path) -> None:
    """Checks that there is a Java for Spark, and room in FALCON_HOME.

    Raises:
        SettingsError: one of them is not.
    """
    require_java(environ)
    require_space(home)
