"""The tables of counterparts of all elements and attributes of Falcon's entities.

Source: the schemas of Apache Falcon 0.3 to 0.11, and of Ivory before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from falcon_assets.features.falcon_xml.datasources import common_credential, credential, datasource_type, endpoint
from falcon_assets.features.falcon_xml.properties import properties
from falcon_assets.features.falcon_xml.remains import original
from falcon_assets.features.falcon_xml.rules import Conversion, Found, Rule
from falcon_assets.features.falcon_xml.transfers import TRANSFERS
from falcon_assets.features.falcon_xml.values import (
    attempts,
    execute,
    flag,
    folder,
    instant,
    location,
    name,
    names,
    number,
    permission,
    readonly,
    registry,
    tags,
    time_zone,
    words,
)
from falcon_assets.features.falcon_xml.workflows import late_workflow, spark_properties, workflow
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, Value

_EVENTS = ("FAILED", "TIMED_OUT", "SUCCEEDED")
"""Falcon sent mail when an instance ended."""


def notification(found: Found, conversion: Conversion) -> Value | None:
    """Returns receivers as variables that the user must set: the mail server was known to Falcon's servers only."""
    said = {one.name: one.value.strip() for one in found.element.attributes}
    addresses = list(dict.fromkeys(filter(None, (one.strip() for one in said.get("to", "").split(",")))))
    if said.get("type") != "email" or not addresses:
        conversion.leave_out(found.element, found.name, "it names no mail address: it is left out")
        return None
    for attribute in found.element.attributes:
        attribute.taken = attribute.name in ("type", "to")
        if attribute.name == "level":
            attribute.taken = True
            conversion.warn(attribute.line, f"{found.name}/@level", "notifications are sent when no retry follows")
    receivers: list[Node] = []
    for address in addresses:
        name = f"MAIL_{re.sub(r'[^A-Z0-9]+', '_', address.upper()).strip('_')}"
        url: Keys = {"env": Node(name, found.line)}
        receiver: Keys = {"url": Node(url, found.line)}
        receivers.append(Node(receiver, found.line))
        how = f"mailtos://USER:PASSWORD@SMTP_SERVER?to={address}"
        conversion.warn(found.line, f"{found.name}/@to", f"set the environment variable {name} for the daemon: {how}")
    events = [Node(event, found.line) for event in _EVENTS]
    return {"on": Node(events, found.line, [original(found.element)]), "to": Node(receivers, found.line)}


_VERSION = "each change of a definition is recorded as a version: see falcon entity history"
_QUEUE = "retention and archiving run in Dagster, without queues and priorities: nothing to do"
_DRIVER = "drivers are Python packages here: see the guide Datasources"
_OF_SQOOP = "they were for Sqoop and JDBC: see driver of a datasource"
_INTERFACE_VERSION = "versions of endpoints are not needed: nothing to do"

ACL = (
    Rule("ACL/@owner", "acl.owner"),
    Rule("ACL/@group", "acl.group"),
    Rule("ACL/@permission", "acl.permission", permission),
)
VALIDITY = (
    Rule("validity/@start", "validity.start", instant),
    Rule("validity/@end", "validity.end", instant),
)
LOCATIONS = (
    *(Rule(f"locations/location[type={one}]/@path", f"locations.{one}", location) for one in ("data", "stats", "meta")),
    Rule("locations/location[type=tmp]", advice="staging is set by the cluster: see its locations"),
    Rule("table/@uri", "table.uri"),
)
FEED_SLA = (Rule("sla/@slaLow", "sla.low"), Rule("sla/@slaHigh", "sla.high"))
RETENTION_LIMIT = "lifecycle/retention-stage/properties/property[name=retention.policy.agebaseddelete.limit]/@value"
LIFECYCLE = (
    Rule("lifecycle/retention-stage/frequency", "lifecycle.retention.frequency"),
    Rule("lifecycle/retention-stage/policy", advice="retention goes by age: see retention.limit"),
    Rule("lifecycle/retention-stage/queue", advice=_QUEUE),
    Rule("lifecycle/retention-stage/priority", advice=_QUEUE),
    Rule("lifecycle/archival-stage/policy", advice="there is only one way to archive: see retention.archive_to"),
    Rule("lifecycle/archival-stage/queue", advice=_QUEUE),
    Rule("lifecycle/archival-stage/properties", advice="archives have no properties: see retention.archive_to"),
    Rule(
        "lifecycle/archival-stage/deleteFromSource",
        advice="an instance is moved to the archive when it is older than retention.limit: check that this is right",
    ),
)

CLUSTER = (
    Rule("@name", "name", name),
    Rule("@colo", "colo"),
    Rule("@description", "description"),
    Rule("tags", "tags", tags),
    Rule("interfaces/interface[type=write]/@endpoint", "interfaces.write.endpoint"),
    Rule("interfaces/interface[type=readonly]/@endpoint", "interfaces.readonly.endpoint", readonly),
    Rule("interfaces/interface[type=execute]/@endpoint", "interfaces.execute.endpoint", execute),
    Rule("interfaces/interface[type=spark]/@endpoint", "interfaces.execute.endpoint", execute),
    Rule("interfaces/interface[type=registry]/@endpoint", "interfaces.registry.endpoint", registry),
    Rule("interfaces/interface[type=messaging]/@endpoint", "interfaces.messaging.endpoint"),
    Rule("interfaces/interface[type=workflow]", advice="Dagster runs the workflows, not Oozie: nothing to do"),
    Rule("interfaces/interface/@version", advice=_INTERFACE_VERSION),
    Rule("locations/location[name=staging]/@path", "locations.staging", folder),
    Rule("locations/location[name=working]/@path", "locations.working", folder),
    Rule("locations/location[name=temp]", advice="Spark has temporary folders of its own: set spark.local.dir"),
    *ACL,
    Rule("properties", "properties", properties),
    Rule("@version", advice=_VERSION),
)

FEED_CLUSTER = (
    Rule("@name", "name", name),
    Rule("@type", "type", words({"SOURCE": "source", "TARGET": "target"}, "words are written in lower case")),
    *VALIDITY,
    Rule("retention/@limit", "retention.limit"),
    Rule("retention/@action", "retention.action"),
    Rule("retention/@type", advice="retention always counts by instance: nothing to do"),
    Rule(RETENTION_LIMIT, "retention.limit"),
    Rule("lifecycle/archival-stage/location/@path", "retention.archive_to", location),
    Rule("lifecycle/archival-stage/location/@type", advice="data, stats and meta are archived together: nothing to do"),
    *LIFECYCLE,
    Rule("@partition", "partition"),
    Rule("@delay", "delay"),
    *FEED_SLA,
    *LOCATIONS,
    *TRANSFERS,
    Rule("@version", advice=_VERSION),
)
FEED = (
    Rule("@name", "name", name),
    Rule("@description", "description"),
    Rule("tags", "tags", tags),
    Rule("groups", "groups", names),
    Rule("frequency", "frequency"),
    Rule("timezone", "timezone", time_zone),
    Rule("partitions/partition/@name", "partitions[]"),
    Rule("availabilityFlag", "availability_flag"),
    Rule("late-arrival/@cut-off", "late_arrival.cut_off"),
    *FEED_SLA,
    *LOCATIONS,
    *LIFECYCLE,
    Rule("clusters/cluster", "clusters[]", rules=FEED_CLUSTER),
    Rule(RETENTION_LIMIT, "clusters[].retention.limit"),
    Rule("lifecycle/archival-stage/location/@path", "clusters[].retention.archive_to", location),
    Rule("lifecycle/archival-stage/location/@type", advice="data, stats and meta are archived together: nothing to do"),
    *ACL,
    Rule("properties", "properties", properties),
    Rule("schema", advice="write the columns as Spark DDL in schema, and how files are written in format"),
    Rule("notification", "notification", notification),
    Rule("@version", advice=_VERSION),
)

INPUT = (
    Rule("@name", "name", name),
    Rule("@feed", "feed", name),
    Rule("@start", "start"),
    Rule("@end", "end"),
    Rule("@optional", "optional", flag),
    Rule("@partition", "partition"),
)
OUTPUT = (Rule("@name", "name", name), Rule("@feed", "feed", name), Rule("@instance", "instance"))
LATE_INPUT = (Rule("@input", "input", name), Rule("@workflow-path", "workflow", late_workflow))
PROCESS = (
    Rule("@name", "name", name),
    Rule("@description", "description"),
    Rule("tags", "tags", tags),
    Rule("pipelines", "pipelines", names),
    Rule(
        "clusters/cluster",
        "clusters[]",
        rules=(
            Rule("@name", "name", name),
            *VALIDITY,
            Rule("sla", advice="a process has one SLA for all of its clusters: write sla of the process"),
            Rule("@version", advice=_VERSION),
        ),
    ),
    Rule("parallel", "parallel", number),
    Rule("order", "order", words({"ONLYLAST": "LAST_ONLY"}, "later versions of Falcon have this name")),
    Rule("timeout", "timeout"),
    Rule("frequency", "frequency"),
    Rule("timezone", "timezone", time_zone),
    Rule("sla/@shouldStartIn", "sla.should_start_in"),
    Rule("sla/@shouldEndIn", "sla.should_end_in"),
    Rule("inputs/input", "inputs[]", rules=INPUT),
    Rule("outputs/output", "outputs[]", rules=OUTPUT),
    Rule("workflow", "workflow", workflow),
    Rule("retry/@policy", "retry.policy", words({"backoff": "periodic"}, "later versions of Falcon have this name")),
    Rule("retry/@delay", "retry.delay"),
    Rule("retry/@attempts", "retry.attempts", attempts),
    Rule("retry/@onTimeout", "retry.on_timeout", flag),
    Rule("late-process/@policy", "late_process.policy", words({"periodic": "backoff"}, "both mean every delay")),
    Rule("late-process/@delay", "late_process.delay"),
    Rule("late-process/late-input", "late_process.inputs[]", rules=LATE_INPUT),
    Rule("properties", "properties", properties),
    Rule("spark-attributes/spark-opts", "properties", spark_properties),
    *ACL,
    Rule("notification", "notification", notification),
    Rule("@version", advice=_VERSION),
)

DATASOURCE = (
    Rule("@name", "name", name),
    Rule("@colo", "colo"),
    Rule("@description", "description"),
    Rule("tags", "tags", tags),
    Rule("@type", "type", datasource_type),
    *(
        rule
        for one in ("readonly", "write")
        for rule in (
            Rule(f"interfaces/interface[type={one}]/@endpoint", f"interfaces.{one}.endpoint", endpoint),
            Rule(f"interfaces/interface[type={one}]/credential", f"interfaces.{one}.credential", credential),
        )
    ),
    Rule("interfaces/credential", "interfaces", common_credential),
    Rule("interfaces/interface/driver", advice=_DRIVER),
    Rule("interfaces/interface/properties", advice=_OF_SQOOP),
    Rule("driver", advice=_DRIVER),
    Rule("properties", advice=_OF_SQOOP),
    *ACL,
    Rule("@version", advice=_VERSION),
)

KINDS: Mapping[str, tuple[Rule, ...]] = {
    "cluster": CLUSTER,
    "datasource": DATASOURCE,
    "feed": FEED,
    "process": PROCESS,
}
"""Root element, which is the kind, -> its rules."""
