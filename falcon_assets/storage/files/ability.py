"""Abilities that not every store has; callers ask for one by name, and not for the kind of store."""

from __future__ import annotations

from enum import Enum


class Ability(Enum):
    RENAME = "rename"
    """Exchanges an instance in one step: without it, outputs in several steps are written in their final place."""
    LOCK = "lock"
    """Keeps others away until the holder ends, in any way."""
    MODES = "modes"
    TIMES = "times"
    WITHOUT_CONNECTOR = "to be read without a connector"
    """Any Spark can read it; without it, Spark needs jars, or copies on a file system."""
    SPARK_OUTPUT = "outputs of workflows"
    VERSIONS = "versions"
