"""Which versions the graph need not know any longer; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from falcon_assets.planning.lineage.graph import Version
from falcon_assets.planning.lineage.version_status import VersionStatus


def expired(
    versions: Iterable[Version], edges: Iterable[tuple[int, int]], protected: Collection[int], before: datetime
) -> list[Version]:
    """Those whose data went before that time, and what was only read to make them.

    Nothing whose data is there, in an archive too, and nothing that is protected: it is critical, or something critical
    was made from it. What was only read has no time of its own: it goes with the last version that was made from it.

    Args:
        versions: All that are known; those that are there or in an archive, or went later, may be left out.
        edges: What was made, and what it was made from: all to those that were only read.
        protected: By number.
        before: The time.
    """
    known = [one for one in versions if not (one.exists or one.archived_to or one.number in protected)]
    gone = {one.number for one in known if one.ended_at and one.ended_at < before}
    still_read = {read for output, read in edges if output not in gone}
    read_only = {one.number for one in known if one.status is VersionStatus.READ} - still_read
    return [one for one in known if one.number in gone or one.number in read_only]
