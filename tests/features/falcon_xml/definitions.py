"""Definitions as Falcon's users wrote them: what the schemas allow, each thing at least once."""

from __future__ import annotations

CLUSTER = """<?xml version="1.0" encoding="UTF-8"?>
<!-- the cluster in the east -->
<cluster colo="east" description="where clicks land" name="primary"
         xmlns="uri:falcon:cluster:0.1" version="0">
    <tags>owner=ops@example.com, team=data</tags>
    <interfaces>
        <interface type="readonly" endpoint="webhdfs://nn:50070" version="2.7.1"/>
        <!-- everything lies here -->
        <interface type="write" endpoint="file:///data/east"
                   version="2.7.1"/>
        <interface type="execute" endpoint="rm:8021" version="2.7.1"/>
        <interface type="workflow" endpoint="http://oozie:11000/oozie/" version="4.2"/>
        <interface type="messaging" endpoint="tcp://mq:61616?daemon=true" version="5.1.6"/>
        <interface type="registry" endpoint="thrift://hive:9083" version="1.2"/>
    </interfaces>
    <locations>
        <location name="staging" path="/apps/falcon/staging"/>
        <location name="temp" path="/tmp"/>
        <location name="working" path="/apps/falcon/working"/>
    </locations>
    <ACL owner="ops" group="users" permission="0x755"/>
    <properties>
        <property name="region" value="eu"/>
    </properties>
</cluster>
"""

FEED = """<feed description="clicks as they land" name="clicks" xmlns="uri:falcon:feed:0.1">
    <tags>consumer=bi, classification=public</tags>
    <partitions>
        <partition name="country"/>
    </partitions>
    <groups>online,bi</groups>
    <availabilityFlag>_SUCCESS</availabilityFlag>
    <frequency>hours(1)</frequency>
    <sla slaLow="hours(2)" slaHigh="hours(3)"/>
    <timezone>UTC</timezone>
    <late-arrival cut-off="hours(6)"/>
    <clusters>
        <!-- where it lands -->
        <cluster name="primary" type="source" partition="${cluster.colo}" delay="minutes(40)">
            <validity start="2012-01-01T00:00Z" end="2012-12-31T00:00Z"/>
            <retention type="instance" limit="days(2)" action="delete"/>
            <sla slaLow="hours(3)" slaHigh="hours(4)"/>
            <import>
                <source name="db" tableName="clicks">
                    <extract type="incremental">
                        <deltacolumn>at</deltacolumn>
                        <mergepolicy>append</mergepolicy>
                    </extract>
                    <fields><includes><field>id</field></includes></fields>
                </source>
                <arguments>
                    <argument name="--split-by" value="id"/>
                    <argument name="--password" value="hunter2"/>
                </arguments>
            </import>
            <locations>
                <location type="data" path="/east/clicks/${YEAR}/${MONTH}/${DAY}/${HOUR}"/>
            </locations>
        </cluster>
    </clusters>
    <locations>
        <location type="data" path="/clicks/${YEAR}/${MONTH}/${DAY}/${HOUR}"/>
        <location type="stats" path="/none"/>
        <location type="meta" path="/none"/>
        <location type="tmp" path="/tmp"/>
    </locations>
    <notification type="email" level="attempt" to="a@example.com"/>
    <ACL owner="etl" group="users"/>
    <schema location="/schema/clicks" provider="protobuf"/>
    <properties>
        <property name="kept" value="a b: c"/>
    </properties>
    <lifecycle>
        <retention-stage>
            <policy>AgeBasedDelete</policy>
            <frequency>hours(10)</frequency>
            <queue>reports</queue>
            <priority>NORMAL</priority>
            <properties>
                <property name="retention.policy.agebaseddelete.limit" value="days(3)"/>
            </properties>
        </retention-stage>
    </lifecycle>
</feed>
"""

OUTPUT = """<feed name="joined" xmlns="uri:falcon:feed:0.1">
    <frequency>hours(1)</frequency>
    <clusters>
        <cluster name="primary">
            <validity start="2012-01-01T00:00Z" end="2012-12-31T00:00Z"/>
            <retention limit="months(6)" action="delete"/>
        </cluster>
    </clusters>
    <locations>
        <location type="data" path="/joined/${YEAR}/${MONTH}/${DAY}/${HOUR}"/>
    </locations>
    <ACL owner="etl" group="users" permission="0755"/>
    <schema location="/none" provider="none"/>
</feed>
"""

PROCESS = """<process name="join" xmlns="uri:falcon:process:0.1">
    <tags>consumer=bi</tags>
    <pipelines>clickstream, nightly</pipelines>
    <!-- where -->
    <clusters>
        <cluster name="primary">
            <validity start="2012-01-02T00:00Z" end="2012-12-30T00:00Z"/>
            <sla shouldStartIn="hours(1)" shouldEndIn="hours(2)"/>
        </cluster>
    </clusters>
    <parallel>2</parallel>
    <order>LIFO</order>
    <timeout>hours(7)</timeout>
    <frequency>hours(1)</frequency>
    <sla shouldStartIn="hours(1)" shouldEndIn="hours(3)"/>
    <timezone>UTC</timezone>
    <inputs>
        <!-- the hour and the one before -->
        <input name="clicks" feed="clicks" start="now(-1,0)" end="now(0,0)" partition="*" optional="true"/>
    </inputs>
    <outputs>
        <output name="out" feed="joined" instance="now(0,0)"/>
    </outputs>
    <properties>
        <property name="least" value="15"/>
        <property name="root" value="${nameNode}/apps"/>
    </properties>
    <workflow name="joiner" version="2.0" engine="oozie" path="/apps/join/workflow.xml" lib="/apps/join/lib"/>
    <retry policy="periodic" delay="minutes(10)" attempts="3" onTimeout="true"/>
    <late-process policy="exp-backoff" delay="hours(1)">
        <late-input input="clicks" workflow-path="/apps/join/late.xml"/>
    </late-process>
    <notification type="email" to="a@example.com"/>
    <ACL owner="etl" group="users" permission="*"/>
</process>
"""

ALL = {"cluster.xml": CLUSTER, "clicks.xml": FEED, "joined.xml": OUTPUT, "join.xml": PROCESS}


def changed(text: str, old: str, new: str) -> str:
    """The text with the one place that says ``old`` saying ``new``."""
    assert text.count(old) == 1, old
    return text.replace(old, new)
