"""Conversion of properties: of those for Falcon and Hadoop, and of Oozie's expressions in them."""

from __future__ import annotations

from collections.abc import Mapping

from falcon_assets.features.falcon_xml.elements import Element
from falcon_assets.features.falcon_xml.expressions import UntranslatableError, translated
from falcon_assets.features.falcon_xml.remains import is_secret, original
from falcon_assets.features.falcon_xml.rules import Conversion, Found
from falcon_assets.features.falcon_xml.yaml_text import Node, Value
from falcon_assets.features.falcon_xml.zones import iana_zone

QUEUE = "spark.yarn.queue"
QUEUES = ("queueName", "mapreduce.job.queuename", "mapred.job.queue.name")
"""Properties that named the queue of YARN."""
_NO_PRIORITY = "a process has the priority of its queue: see queue, and FALCON_QUEUES"
_NO_JMS = "no JMS messages are sent: see interfaces.messaging of the cluster, and notification"
_BY_HADOOP = "Kerberos is configured in Hadoop's own files, in the folder that HADOOP_CONF_DIR names"
SPECIAL: Mapping[str, str] = {
    "jobPriority": _NO_PRIORITY,
    "mapreduce.job.priority": _NO_PRIORITY,
    "mapred.job.priority": _NO_PRIORITY,
    "userJMSNotificationEnabled": _NO_JMS,
    "systemJMSNotificationEnabled": _NO_JMS,
    "dfs.namenode.kerberos.principal": _BY_HADOOP,
    "yarn.resourcemanager.principal": _BY_HADOOP,
    "hive.metastore.kerberos.principal": _BY_HADOOP,
    "hive.metastore.sasl.enabled": _BY_HADOOP,
    "hadoop.rpc.protection": _BY_HADOOP,
}
"""Property with a meaning to Falcon or Hadoop and none here -> reason."""


def properties(found: Found, conversion: Conversion) -> Value | None:
    pairs: dict[str, Node] = {}
    for element in found.element.named("property"):
        key, value = element.attribute("name"), element.attribute("value")
        element.taken = True
        if key is None or value is None or not key.value.strip():
            conversion.leave_out(element, f"{found.name}/property", "it lacks a name or a value: it is left out")
            continue
        where = f"{found.name}/property[{key.value}]"
        key.taken = value.taken = True
        if key.value in pairs:
            before = pairs[key.value]
            conversion.warn(before.line, where, f"line {element.line} gives it again, and is used instead")
            conversion.remains.append((before.line, f"properties.{key.value}: {before.value}"))
        if is_secret(key.value) and value.value:
            conversion.warn(
                value.line, where, "a secret in plain text: name it in storage_options as {env: NAME}, and remove it"
            )
        text = _text(value.value, value.line, where, found, conversion)
        if text is None:
            pairs.pop(key.value, None)
            conversion.remains.append((element.line, original(element)))
            continue
        pairs[key.value] = Node(text, value.line, element.claim_comments())
        if key.value in SPECIAL:
            conversion.warn(value.line, where, f"it stays, but has no effect: {SPECIAL[key.value]}")
    _queue(pairs, found, conversion)
    return pairs or None


def zone_of(root: Element) -> str:
    said = next(iter(root.named("timezone")), None)
    return (iana_zone(said.text.strip())[0] if said else "") or "UTC"


def _text(value: str, line: int, where: str, found: Found, conversion: Conversion) -> str | None:
    """Returns None where there is no counterpart, after a warning."""
    root = found.parents[0]
    try:
        return translated(value, zone_of(root)) if root.name == "process" else value
    except UntranslatableError as error:
        conversion.warn(line, where, f"{error}: it is left out")
        return None


def _queue(pairs: dict[str, Node], found: Found, conversion: Conversion) -> None:
    """Sets Spark's property for the queue of YARN; shared sessions have that of their cluster."""
    said = next((name for name in QUEUES if name in pairs), None)
    if said is None:
        return
    root, node = found.parents[0], pairs[said]
    workflow = next(iter(root.named("workflow")), None)
    engine = workflow.attribute("engine") if workflow else None
    where = f"{found.name}/property[{said}]"
    if engine is not None and engine.value.strip() == "spark":
        pairs.setdefault(QUEUE, Node(node.value, node.line))
        conversion.warn(node.line, where, f"it stays, and is also written as {QUEUE}, which selects YARN's queue")
    else:
        rule = f"write {QUEUE} into the properties of the cluster, or of a program (spark-submit)"
        conversion.warn(node.line, where, f"it stays, but selects no queue: {rule}")
