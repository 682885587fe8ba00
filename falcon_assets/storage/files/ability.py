"""What not every store can do; whoever needs it asks for it by name, and not for the kind of store."""

from __future__ import annotations

from enum import Enum


class Ability(Enum):
    """What not every store can do."""

    RENAME = "rename"
    """To exchange an instance in one step: without it, what is written in several steps is written in its place."""
    LOCK = "lock"
    """To keep others away, until the holder ends in whatever way."""
    MODES = "modes"
    """To keep owners and permissions that anybody may set."""
    TIMES = "times"
    """To keep times of files that anybody may set."""
    WITHOUT_CONNECTOR = "to be read without a connector"
    """To be read by any Spark: without it, Spark needs jars, or copies on a file system."""
    SPARK_OUTPUT = "outputs of workflows"
    """To be written to by Spark."""
    VERSIONS = "versions"
    """To keep what is replaced beside its successor."""
