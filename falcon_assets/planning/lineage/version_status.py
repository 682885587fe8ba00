"""What has become of a version of a feed instance."""

from __future__ import annotations

from enum import Enum


class VersionStatus(str, Enum):
    """What has become of a version of a feed instance on a cluster."""

    AVAILABLE = "AVAILABLE"
    """It is there."""
    REPLACED = "REPLACED"
    """Another version took its place."""
    EVICTED = "EVICTED"
    """Retention deleted or archived it."""
    READ = "READ"
    """A run read it, and nobody recorded that it was there: it was replaced before, or has yet to be collected."""
