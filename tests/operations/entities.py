"""Definitions that the tests of operations and of the commands over them share."""

from __future__ import annotations

from tests.builders import VALIDITY, cluster_yaml, feed_yaml, on, process_yaml

ARCHIVED = {
    "limit": "hours(2)",
    "action": "archive",
    "archive_to": "/old/${YEAR}-${MONTH}-${DAY}-${HOUR}",
    "archive_cluster": "empty",
}
THREE_HOURS = {"limit": "hours(3)"}
READ = {"start": "2013-01-01T01:00Z", "end": "2013-01-01T03:00Z"}
RETAINED = "".join(
    [
        *map(cluster_yaml, ("primary", "backup", "empty")),
        feed_yaml("raw", on("primary", retention=THREE_HOURS), on("backup", retention=ARCHIVED), schedule=True),
        feed_yaml("kept"),
        feed_yaml("unborn", on("empty")),
        feed_yaml("linked", on("backup", retention=THREE_HOURS)),
        process_yaml("reader", "raw", "kept", on("primary", validity=READ), schedule=True),
    ]
)

_LONG = {**VALIDITY, "start": "2012-01-01T00:00Z"}
_SHORT = {**VALIDITY, "start": "2012-06-01T00:00Z"}
_AWAY = {"write": {"endpoint": "s3://lake/data"}, "execute": {"endpoint": "local[1]"}}
COLLECTED = "".join(
    [
        cluster_yaml("primary"),
        cluster_yaml("short"),
        cluster_yaml("away", interfaces=_AWAY),
        feed_yaml("raw", on("primary", validity=_LONG), on("short", validity=_SHORT), availability_flag="_SUCCESS"),
        feed_yaml("made", on("primary", validity=_LONG)),
        feed_yaml("remote", on("away", validity=_LONG)),
        process_yaml("make", "raw", "made", on("primary", validity=_LONG)),
    ]
)
