"""Falcon's defaults: a table of all of them, and those that must be written because defaults here differ.

Source: the schemas of Apache Falcon 0.11, its specification of entities, and its builders of coordinators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from falcon_assets.features.falcon_xml.elements import Element
from falcon_assets.features.falcon_xml.rules import Conversion
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node

_FREQUENCY = re.compile(r"(minutes|hours|days|months)\(([0-9]{1,6})\)")
_HOURS = {"minutes": 1 / 60, "hours": 1, "days": 24, "months": 24 * 28}
_SHORTEST, _DAY = 6, 24
"""Hours between two passes of retention."""
_SAME = "nothing: the default here is the same"


_NO_RETRIES = "Falcon tried nothing again where no retry was given"
_FINAL = "final means no retries"


@dataclass(frozen=True)
class Default:
    """A default of Falcon.

    Attributes:
        source: The missing element or attribute.
        meaning: The behaviour of Falcon without it.
        written: The output of the import for it.
    """

    source: str
    meaning: str
    written: str


ACL_DEFAULT = Default("ACL/@permission", "`*`: left alone", '`acl.permission: "*"`')
_TIMEZONE = Default("timezone", "`UTC`", _SAME)
_VERSION = Default("@version", "`0`", "nothing: `falcon entity history` numbers the versions")
DEFAULTS: Mapping[str, tuple[Default, ...]] = {
    "cluster": (
        ACL_DEFAULT,
        Default(
            "interfaces/interface[type=readonly]", "required", "nothing: replication reads from `interfaces.write`"
        ),
        Default("interfaces/interface[type=registry]", "no tables", _SAME),
        Default(
            "interfaces/interface[type=spark]",
            "each process names its master",
            "`interfaces.execute.endpoint`, from the interface `execute`",
        ),
        Default(
            "locations/location[name=working]",
            "a folder in `staging`",
            "nothing: the default here is `/.falcon/working`",
        ),
        Default("locations/location[name=temp]", "`/tmp`", "nothing: see `spark.local.dir`"),
        _VERSION,
    ),
    "datasource": (
        Default("interfaces/interface/credential", "that of all interfaces", "it is written to the interface"),
        ACL_DEFAULT,
        _VERSION,
    ),
    "feed": (
        _TIMEZONE,
        Default("timezone of paths", "`UTC`, whatever the feed's zone is", "`path_timezone: UTC`"),
        Default("availabilityFlag", "the folder's presence", _SAME),
        Default("late-arrival", "late data is not looked for", _SAME),
        Default("sla", "nobody is warned", _SAME),
        Default("clusters/cluster/@type", "not replicated", _SAME),
        Default("clusters/cluster/@delay", "none", _SAME),
        Default("clusters/cluster/locations", "those of the feed", _SAME),
        Default("clusters/cluster/sla", "that of the feed", _SAME),
        Default("clusters/cluster/retention/@type", "`instance`", _SAME),
        Default(
            "how often retention runs, without a lifecycle",
            "every 6 hours, or every day for feeds of a day and more",
            "`lifecycle.retention.frequency`, where the default here is another one",
        ),
        Default(
            "lifecycle/retention-stage/frequency",
            "6 hours, or the feed's frequency where that is longer",
            "`lifecycle.retention.frequency`",
        ),
        Default("lifecycle/retention-stage/policy", "`AgeBasedDelete`", _SAME),
        Default(
            "`falcon.retention.keep.instances.beyond.validity` of the server",
            "`true`: retention ends with the validity, and the last instances stay for good",
            "nothing: they are evicted when older than `retention.limit`, too; remove `retention` to keep them",
        ),
        ACL_DEFAULT,
        Default("properties: `timeout`", "6 times the frequency, 30 minutes at least", _SAME),
        Default("properties: `parallel`, `order`", "`1`, `FIFO`", _SAME),
        Default("properties: `removeDeletedFiles`", "`true`", _SAME),
        Default("properties: `overwrite`, `ignoreErrors`, `skipChecksum`", "`false`", _SAME),
        Default(
            "properties: `maxMaps`, `mapBandwidth`",
            "`5` and `100` (MB/s), set on the server",
            "nothing: `20`, without a limit of speed; write the properties to limit a copy",
        ),
        Default(
            "properties: `queueName`, `jobPriority`",
            "`default`, `NORMAL`",
            "nothing: `spark.yarn.queue` of the cluster",
        ),
        Default(
            "retries of replication",
            "3, after 5, 10 and 20 minutes, set on the server",
            "nothing: 3, ten minutes apart",
        ),
        Default("late data in replication", "looked for 3, 9, 21 ... hours after the nominal time", _SAME),
        Default("notification/@level", "once no retry follows", _SAME),
        _VERSION,
    ),
    "process": (
        Default("retry", "**no retries**", "`retry: {policy: final}`"),
        Default("retry/@onTimeout", "`false`", _SAME),
        Default("late-process", "late data is not looked for", _SAME),
        _TIMEZONE,
        Default("timeout", "6 times the frequency, 30 minutes at least", _SAME),
        Default("parallel, order", "required", "nothing: `1` and `FIFO` where Ivory's definitions have none"),
        Default("pipelines", "none", "nothing: `default`"),
        Default("sla/@shouldStartIn", "nobody is warned", "`sla.should_start_in`, the same as `should_end_in`"),
        Default("inputs/input/@optional", "`false`", _SAME),
        Default("inputs/input/@partition", "all", _SAME),
        Default("workflow/@engine", "`oozie`", "a program that fails until it is written"),
        Default("workflow/@version", "`1.0`", "nothing: it has no effect"),
        Default(
            "spark-attributes/arg",
            "the inputs, then the outputs, before all arguments",
            "`workflow.args`: `${input}`, `${output}` and the arguments. Of tables, Falcon passed filter, table and "
            "database: let the program take them by name",
        ),
        Default("spark-attributes/master", "that of the cluster", _SAME),
        Default(
            "properties: `queueName`, `jobPriority`", "`default`, `NORMAL`", "nothing: YARN's own defaults are the same"
        ),
        Default(
            "properties: `userJMSNotificationEnabled`", "`true`", "nothing: see `interfaces.messaging` of the cluster"
        ),
        ACL_DEFAULT,
        _VERSION,
    ),
}


def settle_retry(keys: Keys, conversion: Conversion) -> None:
    """Falcon did not retry without ``retry``; ``final`` was an immediate retry, up to ``attempts`` times."""
    workflow = keys.get("workflow")
    retry = keys["retry"].value if "retry" in keys else None
    if retry is None and workflow is not None:
        policy: Keys = {"policy": Node("final", workflow.line)}
        after = list(keys).index("workflow") + 1
        rest = list(keys.items())
        keys.clear()
        keys.update([*rest[:after], ("retry", Node(policy, workflow.line, [_NO_RETRIES])), *rest[after:]])
    elif isinstance(retry, dict) and "policy" in retry and retry["policy"].value == "final":
        attempts, line = retry.get("attempts"), retry["policy"].line
        if attempts is None or attempts.value == 0:
            return
        retry["policy"], retry["delay"] = Node("periodic", line), Node("minutes(1)", line)
        said = f"'final' tried again at once, attempts times: it is written periodic and minutes(1) here, as {_FINAL}"
        conversion.warn(line, "process/retry/@policy", said)


def settle_retention_frequency(keys: Keys, root: Element) -> None:
    """Writes the frequency of retention: Falcon derived it from that of the feed, here it follows from the limit."""
    frequency = _hours(keys.get("frequency"))
    entries = keys["clusters"].value if "clusters" in keys else []
    if frequency is None or not isinstance(entries, list) or "lifecycle" in keys:
        return
    elements = [one for outer in root.named("clusters") for one in outer.named("cluster")]
    for entry, element in zip(entries, elements, strict=False):
        if not isinstance(entry.value, dict) or "lifecycle" in entry.value or "retention" not in entry.value:
            continue
        retention, line = entry.value["retention"].value, entry.value["retention"].line
        limit = _hours(retention.get("limit")) if isinstance(retention, dict) else None
        if _has_stage(root) or _has_stage(element):
            text = str(keys["frequency"].value) if frequency > _SHORTEST else f"hours({_SHORTEST})"
        else:
            text = f"hours({_SHORTEST})" if frequency < _DAY else "days(1)"
        if limit is not None and _hours(Node(text, line)) != (_SHORTEST if limit < _DAY else _DAY):
            stage: Keys = {"frequency": Node(text, line)}
            lifecycle: Keys = {"retention": Node(stage, line)}
            entry.value["lifecycle"] = Node(lifecycle, line)


def _has_stage(element: Element) -> bool:
    return any(one.named("retention-stage") for one in element.named("lifecycle"))


def _hours(node: Node | None) -> float | None:
    """Returns the length of a duration in hours; None: the text is no duration."""
    said = _FREQUENCY.fullmatch(str(node.value)) if node is not None else None
    return int(said[2]) * _HOURS[said[1]] if said else None
