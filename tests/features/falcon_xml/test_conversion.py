"""What becomes of Falcon's words and values."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from falcon_assets.features.falcon_xml.conversion import Imported, convert
from falcon_assets.features.falcon_xml.zones import SHORT_ZONES
from falcon_assets.model.process import Process
from tests.features.falcon_xml.definitions import CLUSTER, FEED, OUTPUT, PROCESS, changed


def imported(text: str) -> Imported:
    found = convert(text.encode(), "x.xml")
    assert isinstance(found, Imported)
    return found


def data(text: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(imported(text).text().text, yaml.BaseLoader)
    return read


def told(text: str, name: str) -> list[tuple[int, str]]:
    return [(one.line, one.message) for one in imported(text).found.warnings if one.name == name]


def test_a_cluster() -> None:
    assert data(CLUSTER) == {
        "kind": "cluster",
        "name": "primary",
        "colo": "east",
        "description": "where clicks land",
        "tags": {"owner": "ops@example.com", "team": "data"},
        "interfaces": {
            "write": {"endpoint": "file:///data/east"},
            "readonly": {"endpoint": "webhdfs://nn:50070"},
            "execute": {"endpoint": "yarn"},
            "registry": {"endpoint": "thrift://hive:9083"},
            "messaging": {"endpoint": "tcp://mq:61616?daemon=true"},
        },
        "locations": {"staging": "/apps/falcon/staging", "working": "/apps/falcon/working"},
        "acl": {"owner": "ops", "group": "users", "permission": "0x755"},
        "properties": {"region": "eu"},
    }


def test_a_feed() -> None:
    assert data(FEED) == {
        "kind": "feed",
        "name": "clicks",
        "description": "clicks as they land",
        "tags": {"consumer": "bi", "classification": "public"},
        "groups": ["online", "bi"],
        "frequency": "hours(1)",
        "timezone": "UTC",
        "partitions": ["country"],
        "availability_flag": "_SUCCESS",
        "late_arrival": {"cut_off": "hours(6)"},
        "sla": {"low": "hours(2)", "high": "hours(3)"},
        "locations": {"data": "/clicks/${YEAR}/${MONTH}/${DAY}/${HOUR}", "stats": "/none", "meta": "/none"},
        "lifecycle": {"retention": {"frequency": "hours(10)"}},
        "clusters": [
            {
                "name": "primary",
                "type": "source",
                "validity": {"start": "2012-01-01T00:00Z", "end": "2012-12-31T00:00Z"},
                "retention": {"limit": "days(3)", "action": "delete"},
                "partition": "${cluster.colo}",
                "delay": "minutes(40)",
                "sla": {"low": "hours(3)", "high": "hours(4)"},
                "import": {
                    "source": {"name": "db", "table": "clicks"},
                    "extract": {"incremental": {"column": "at"}},
                    "merge": "append",
                    "fields": {"include": ["id"]},
                    "partition_by": "id",
                },
                "locations": {"data": "/east/clicks/${YEAR}/${MONTH}/${DAY}/${HOUR}"},
            }
        ],
        "notification": {"on": ["FAILED", "TIMED_OUT", "SUCCEEDED"], "to": [{"url": {"env": "MAIL_A_EXAMPLE_COM"}}]},
        "acl": {"owner": "etl", "group": "users", "permission": "*"},
        "properties": {"kept": "a b: c"},
    }


def test_a_process() -> None:
    assert data(PROCESS) == {
        "kind": "process",
        "name": "join",
        "tags": {"consumer": "bi"},
        "pipelines": ["clickstream", "nightly"],
        "clusters": [{"name": "primary", "validity": {"start": "2012-01-02T00:00Z", "end": "2012-12-30T00:00Z"}}],
        "parallel": "2",
        "order": "LIFO",
        "timeout": "hours(7)",
        "frequency": "hours(1)",
        "timezone": "UTC",
        "sla": {"should_start_in": "hours(1)", "should_end_in": "hours(3)"},
        "inputs": [
            {
                "name": "clicks",
                "feed": "clicks",
                "start": "now(-1,0)",
                "end": "now(0,0)",
                "optional": "true",
                "partition": "*",
            }
        ],
        "outputs": [{"name": "out", "feed": "joined", "instance": "now(0,0)"}],
        "workflow": {"engine": "pyspark", "path": "workflows/join.py", "name": "joiner", "version": "2.0"},
        "retry": {"policy": "periodic", "delay": "minutes(10)", "attempts": "3", "on_timeout": "true"},
        "late_process": {
            "policy": "exp-backoff",
            "delay": "hours(1)",
            "inputs": [{"input": "clicks", "workflow": {"engine": "pyspark", "path": "workflows/join-late-clicks.py"}}],
        },
        "properties": {"least": "15", "root": "${nameNode}/apps"},
        "notification": {"on": ["FAILED", "TIMED_OUT", "SUCCEEDED"], "to": [{"url": {"env": "MAIL_A_EXAMPLE_COM"}}]},
        "acl": {"owner": "etl", "group": "users", "permission": "*"},
    }


def test_comments_stand_where_they_stood() -> None:
    assert imported(PROCESS).text().text.startswith("# Imported from x.xml\nkind: process\n")
    assert "# where\nclusters:\n  - {name: primary" in imported(PROCESS).text().text
    assert "inputs:\n  # the hour and the one before\n  - name: clicks\n" in imported(PROCESS).text().text
    cluster = imported(CLUSTER).text().text
    assert cluster.startswith("# Imported from x.xml\n# the cluster in the east\nkind: cluster\n")
    assert "interfaces:\n  write:\n    # everything lies here\n    endpoint:" in cluster


def test_a_stub_says_in_a_sentence_why_it_fails_and_keeps_the_original() -> None:
    files = imported(PROCESS).found.files
    assert sorted(files) == ["workflows/join-late-clicks.py", "workflows/join.py"]
    program = files["workflows/join.py"]
    assert '# <workflow name="joiner" version="2.0" engine="oozie" path="/apps/join/workflow.xml"' in program
    scope: dict[str, Any] = {}
    exec(compile(program, "join.py", "exec"), scope)
    with pytest.raises(NotImplementedError) as caught:
        scope["run"](None, None, None)
    assert str(caught.value) == (
        "process 'join' runs '/apps/join/workflow.xml' with the engine 'oozie', which is not supported: write what it "
        "did, or name another workflow in the definition"
    )


SPARK = """<workflow engine="spark" path="/apps/spark"/>
    <spark-attributes>
        <master>yarn</master>
        <mode>cluster</mode>
        <name>Word count</name>
        <class>org.example.Count</class>
        <jar>/apps/spark/count.jar</jar>
        <spark-opts>--num-executors 3 --conf spark.a=b --executor-memory=1g --verbose --jars x.jar</spark-opts>
        <arg>--day</arg>
        <arg>${coord:formatTime(coord:nominalTime(), 'yyyy-MM-dd')}</arg>
        <arg>${coord:dataOut('out')}</arg>
    </spark-attributes>"""


def of_spark() -> str:
    start = PROCESS.index("<workflow ")
    return PROCESS[:start] + SPARK + PROCESS[PROCESS.index("<retry") :]


def test_a_spark_program() -> None:
    read = data(of_spark())
    assert read["workflow"] == {
        "engine": "spark-submit",
        "path": "workflows/join.py",
        "name": "Word count",
        "args": [
            "${clicks}",
            "${out}",
            "--day",
            "${formatTime(instanceTime(), 'yyyy-MM-dd')}",
            "${out}",
        ],  # Falcon put inputs and outputs in front
    }
    assert read["properties"] == {
        "least": "15",
        "root": "${nameNode}/apps",
        "spark.executor.instances": "3",
        "spark.a": "b",
        "spark.executor.memory": "1g",
    }
    (options,) = told(of_spark(), "process/spark-attributes/spark-opts")
    assert options[1].startswith("the options --verbose, --jars x.jar have no counterpart")
    assert [
        name for name in ("master", "mode", "class") if not told(of_spark(), f"process/spark-attributes/{name}")
    ] == []
    assert "/apps/spark/count.jar" in imported(of_spark()).text().text
    assert (
        "sys.exit(\"process 'join' runs the Spark program '/apps/spark/count.jar', which lies on its cluster"
        in (imported(of_spark()).found.files["workflows/join.py"])
    )


@pytest.mark.parametrize(
    "written, is_now",
    [
        ("2012/01/01T00:00Z", "2012-01-01T00:00Z"),
        ("2012.01.01T00:00Z", "2012-01-01T00:00Z"),
        ("2012-01-01 00:00:00", "2012-01-01T00:00Z"),
    ],
)
def test_instants(written: str, is_now: str) -> None:
    text = changed(OUTPUT, "2012-01-01T00:00Z", written)
    assert data(text)["clusters"][0]["validity"]["start"] == is_now
    assert told(text, "feed/clusters/cluster/validity/@start")


@pytest.mark.parametrize(
    "frequency, zone, shown",
    [
        ("days(1)", "Asia/Singapore", "UTC"),
        ("months(1)", "Asia/Kolkata", "UTC"),
        ("days(1)", "UTC", None),
        ("hours(1)", "Asia/Kolkata", None),
    ],
)
def test_paths_are_filled_as_falcon_filled_them(frequency: str, zone: str, shown: str | None) -> None:
    """In UTC, which those of hours and of UTC show anyway."""
    text = changed(
        OUTPUT, "<frequency>hours(1)</frequency>", f"<frequency>{frequency}</frequency><timezone>{zone}</timezone>"
    )
    assert (data(text).get("path_timezone"), data(text)["timezone"]) == (shown, zone)
    keys = list(data(text))
    assert shown is None or keys[keys.index("timezone") + 1] == "path_timezone"


@pytest.mark.parametrize(
    "written, is_now",
    [
        *SHORT_ZONES.items(),
        ("GMT+5", "Etc/GMT-5"),
        ("GMT-08:00", "Etc/GMT+8"),
        ("GMT-00:00", "UTC"),
        ("GMT+05:30", "Asia/Kolkata"),
        ("GMT+530", "Asia/Kolkata"),
        ("GMT+0545", "Asia/Kathmandu"),
        ("GMT-9:30", "Pacific/Marquesas"),
    ],
)
def test_zones_of_java(written: str, is_now: str) -> None:
    assert ZoneInfo(is_now)
    text = changed(FEED, "<timezone>UTC", f"<timezone>{written}")
    assert data(text)["timezone"] == is_now
    assert told(text, "feed/timezone") == [(10, f"{written!r} is {is_now} here: as Java understood it")]


@pytest.mark.parametrize("written", ["UTC+8", "utc", "GMT+24", "GMT+5:75", "America/Nowhere", "GMT8"])
def test_java_took_gmt_for_zones_that_it_did_not_know(written: str) -> None:
    text = changed(FEED, "<timezone>UTC", f"<timezone>{written}")
    assert data(text)["timezone"] == "UTC"
    assert told(text, "feed/timezone") == [(10, f"{written!r} is UTC here: Java did not know this zone, and took GMT")]


@pytest.mark.parametrize("written", ["GMT+03:30", "GMT+15", "SystemV/PST8"])
def test_zones_without_an_iana_name_stay_to_be_mended(written: str) -> None:
    text = changed(FEED, "<timezone>UTC", f"<timezone>{written}")
    assert data(text)["timezone"] == written
    assert len(told(text, "feed/timezone")) == 1


@pytest.mark.parametrize(
    "zone, written, is_now",
    [
        ("UTC", "${coord:formatTime(coord:nominalTime(), 'yyyy')}", "${formatTime(instanceTime(), 'yyyy')}"),
        (
            "Asia/Kolkata",
            "a-${coord:formatTime(coord:nominalTime(),'yyyy-MM-dd')}",
            "a-${formatTime(instanceTime(), 'yyyy-MM-dd', 'UTC')}",
        ),
        ("UTC", "${coord:nominalTime()}", "${instanceTime()}"),
        ("UTC", "${coord:user()}/${coord:nominalTime()}", "${user()}/${instanceTime()}"),
        (
            "PST",
            "${coord:formatTime(coord:dateOffset(coord:nominalTime(), -1, 'DAY'), 'yyyyMMdd')}",
            "${formatTime(dateOffset(instanceTime(), -24, 'HOUR'), 'yyyyMMdd', 'UTC')}",
        ),
        (
            "UTC",
            "${coord:dateOffset(coord:nominalTime(), -1, 'MONTH')}",
            "${dateOffset(instanceTime(), -1, 'MONTH')}",
        ),
        ("Asia/Kolkata", "${formatTime(instanceTime(),'dd')}", "${formatTime(instanceTime(), 'dd', 'UTC')}"),
        ("UTC", "${user()} ${formatTime(now(0,0),'dd')} coord:x", "${user()} ${formatTime(now(0,0),'dd')} coord:x"),
    ],
)  # fmt: skip
def test_expressions_of_coordinators(zone: str, written: str, is_now: str) -> None:
    text = changed(changed(PROCESS, "${nameNode}/apps", written), "<timezone>UTC", f"<timezone>{zone}")
    assert data(text)["properties"]["root"] == is_now
    assert told(text, "process/properties/property[root]") == []


@pytest.mark.parametrize(
    "zone, written, why",
    [
        ("UTC", "${coord:actualTime()}", "coord:actualTime has no counterpart; properties are the same whenever"),
        ("UTC", "${coord:conf('instrumentation.host')}", "coord:conf has no counterpart; write the value"),
        ("UTC", "${coord:dataIn('clicks')}", "coord:dataIn has no counterpart; workflows are given their inputs"),
        ("UTC", "${coord:formatTime(coord:nominalTime())}", "formatTime takes 2 to 3 argument(s), not 1"),
        ("IST", "${coord:dateOffset(coord:nominalTime(), 1, 'MONTH')}", "Falcon counted in UTC, and dateOffset in"),
    ],
)
def test_expressions_without_a_counterpart_are_named_with_their_line(zone: str, written: str, why: str) -> None:
    text = changed(changed(PROCESS, "${nameNode}/apps", written), "<timezone>UTC", f"<timezone>{zone}")
    assert data(text)["properties"] == {"least": "15"}
    ((line, message),) = told(text, "process/properties/property[root]")
    assert (line, why in message, message.endswith(": it is left out")) == (26, True, True), message
    assert "# line 26: <property name=" in imported(text).text().text


def test_no_retry_is_no_retry() -> None:
    """Omitted, it is three here."""
    start = PROCESS.index("<retry")
    text = PROCESS[:start] + PROCESS[PROCESS.index("<late-process") :]
    assert data(text)["retry"] == {"policy": "final"}
    assert (
        Process.model_validate(data(text) | {"parallel": 2, "inputs": [], "late_process": None}).retry.policy == "final"
    )


def test_final_tried_again_at_once() -> None:
    text = changed(PROCESS, 'policy="periodic" delay="minutes(10)"', 'policy="final" delay="minutes(10)"')
    expected = {"policy": "periodic", "delay": "minutes(1)", "attempts": "3", "on_timeout": "true"}
    assert data(text)["retry"] == expected
    assert len(told(text, "process/retry/@policy")) == 1
    assert data(changed(text, 'attempts="3"', 'attempts="0"'))["retry"]["policy"] == "final"


STAGE = "<lifecycle><retention-stage><queue>x</queue></retention-stage></lifecycle>"


@pytest.mark.parametrize(
    "frequency, limit, stage, is_now",
    [
        ("hours(1)", "days(90)", "", "hours(6)"),
        ("minutes(5)", "hours(2)", "", None),
        ("days(1)", "days(90)", "", None),
        ("months(1)", "months(6)", "", None),
        ("days(1)", "hours(3)", "", "days(1)"),
        ("hours(8)", "days(90)", STAGE, "hours(8)"),
        ("hours(1)", "days(90)", STAGE, "hours(6)"),
    ],
)  # fmt: skip
def test_retention_runs_as_often_as_in_falcon(frequency: str, limit: str, stage: str, is_now: str | None) -> None:
    text = changed(changed(OUTPUT, "hours(1)", frequency), "months(6)", limit).replace("</feed>", f"{stage}</feed>")
    (cluster,) = data(text)["clusters"]
    assert cluster.get("lifecycle") == ({"retention": {"frequency": is_now}} if is_now else None)


def test_queues_and_priorities_do_not_lose_their_meaning_in_silence() -> None:
    both = '<property name="queueName" value="fast"/><property name="jobPriority" value="HIGH"/>'
    text = changed(PROCESS, '<property name="least" value="15"/>', both)
    ((line, queue),) = told(text, "process/properties/property[queueName]")
    assert (line, "selects no queue: write spark.yarn.queue" in queue) == (25, True)
    ((_, priority),) = told(text, "process/properties/property[jobPriority]")
    assert priority.startswith("it stays, but has no effect: ")
    assert "spark.yarn.queue" not in data(text)["properties"]
    program = changed(of_spark(), '<property name="least" value="15"/>', both)
    assert data(program)["properties"]["spark.yarn.queue"] == "fast"
    assert data(changed(program, "--verbose", "--queue slow"))["properties"]["spark.yarn.queue"] == "slow"


@pytest.mark.parametrize(
    "written, is_now, why",
    [
        ("webhdfs://nn:50070", None, ""),
        ("hftp://nn:50070", "", "hftp is not supported any more"),
    ],
)
def test_what_replication_reads_from(written: str, is_now: str | None, why: str) -> None:
    text = changed(CLUSTER, "webhdfs://nn:50070", written)
    assert data(text)["interfaces"].get("readonly") == ({"endpoint": written} if is_now is None else None)
    assert any(why in message for _, message in told(text, "cluster/interfaces/interface/@endpoint"))


@pytest.mark.parametrize("written", ["yarn", "local[2]", "spark://h:7077", "sc://h:15002"])
def test_where_spark_runs_is_kept(written: str) -> None:
    assert data(changed(CLUSTER, '"rm:8021"', f'"{written}"'))["interfaces"]["execute"] == {"endpoint": written}


def test_an_interface_of_spark_counts() -> None:
    spark = '<interface type="spark" endpoint="local[4]" version="1.6"/></interfaces>'
    text = changed(CLUSTER, "</interfaces>", spark)
    assert data(text)["interfaces"]["execute"] == {"endpoint": "local[4]"}
    ((_, message),) = told(text, "interfaces.execute.endpoint")
    assert message == "line 15 of the XML gives it again, and is used instead"


def test_a_metastore_that_is_asked_by_http() -> None:
    text = changed(CLUSTER, "thrift://hive:9083", "http://hive:48080/templeton/v1")
    assert data(text)["interfaces"]["registry"] == {"endpoint": "http://hive:48080/templeton/v1"}
    assert any("URL is thrift" in message for _, message in told(text, "cluster/interfaces/interface/@endpoint"))


def test_names_that_are_too_long_are_shortened_the_same_way_everywhere() -> None:
    long = "a-feed-with-quite-a-long-name-that-falcon-took"
    process = changed(PROCESS, 'feed="clicks"', f'feed="{long}"')
    feed = changed(FEED, 'name="clicks"', f'name="{long}"')
    name = data(feed)["name"]
    assert len(name) == 39
    assert data(process)["inputs"][0]["feed"] == name
    assert told(feed, "feed/@name")[0][1].startswith(f"{long!r} is {name!r} here, also in references")


def test_the_limit_of_a_lifecycle_counts() -> None:
    (message,) = told(FEED, "clusters[].retention.limit")
    assert message[1] == "it is days(2), but the feed's lifecycle says days(3) in line 55, which is used, as in Falcon"


ARCHIVE = """<archival-stage><deleteFromSource>false</deleteFromSource>
    <location type="data" path="/archive/${YEAR}/${MONTH}/${DAY}/${HOUR}"/></archival-stage></lifecycle>"""


def test_an_archival_stage() -> None:
    text = changed(FEED, "</lifecycle>", ARCHIVE)
    retention = data(text)["clusters"][0]["retention"]
    assert retention == {
        "limit": "days(3)",
        "action": "archive",
        "archive_to": "/archive/${YEAR}/${MONTH}/${DAY}/${HOUR}",
    }
    assert told(text, "feed/lifecycle/archival-stage/deleteFromSource")


@pytest.mark.parametrize("action", ["archive", "chown", "chmod"])
def test_actions_of_retention_that_are_not_done(action: str) -> None:
    text = changed(OUTPUT, 'action="delete"', f'action="{action}"')
    assert "retention" not in data(text)["clusters"][0]
    ((_, message),) = told(text, "feed/clusters/cluster/retention/@action")
    assert message.startswith(f"{action!r} is not supported, so nothing is evicted")


@pytest.mark.parametrize(("end", "is_told"), [("2012-12-31T00:00Z", True), ("2099-12-31T00:00Z", False)])
def test_what_falcon_kept_for_good_after_the_validity_goes_here(end: str, is_told: bool) -> None:
    text = changed(OUTPUT, "2012-12-31T00:00Z", end)
    said = (
        f"Falcon's retention ended with the validity, {end}, so instances then younger than months(6) stayed for ever; "
        "here they are evicted, too, when they are older than that: remove retention to keep them"
    )
    assert told(text, "feed/clusters/cluster/retention/@limit") == ([(6, said)] if is_told else [])


def test_half_an_sla_of_a_process() -> None:
    only_end = changed(
        PROCESS, '<sla shouldStartIn="hours(1)" shouldEndIn="hours(3)"/>', '<sla shouldEndIn="hours(3)"/>'
    )
    assert data(only_end)["sla"] == {"should_start_in": "hours(3)", "should_end_in": "hours(3)"}
    only_start = changed(only_end, '<sla shouldEndIn="hours(3)"/>', '<sla shouldStartIn="hours(3)"/>')
    assert "sla" not in data(only_start)
    assert told(only_start, "process/sla") == [(15, "shouldEndIn is missing and required here: the SLA is left out")]


def test_secrets_are_in_no_comment_and_no_warning() -> None:
    found = imported(changed(FEED, 'name="kept"', 'name="db.password"'))
    assert "hunter2" not in found.text().text
    assert 'name="--password" value="****"' in found.text().text
    assert [one.message for one in found.found.warnings if "hunter2" in one.message] == []
    assert [one for one in found.found.warnings if one.name == "feed/properties/property[db.password]"]


@pytest.mark.parametrize(
    "text, why",
    [
        ("<workflow-app xmlns='uri:oozie:workflow:0.3'/>", "it is not an entity of Apache Falcon"),
        ("<feed xmlns='http://www.w3.org/2005/Atom'/>", "it is not an entity of Apache Falcon"),
    ],
)
def test_what_is_no_entity(text: str, why: str) -> None:
    found = convert(text.encode(), "x.xml")
    assert isinstance(found, tuple)
    assert found[0].message.startswith(why)


IVORY = """<process name="old" xmlns="uri:ivory:process:0.1">
    <cluster name="primary"/>
    <concurrency>1</concurrency>
    <execution>ONLYLAST</execution>
    <frequency>hours</frequency>
    <!-- one of them -->
    <periodicity>2</periodicity>
    <validity start="2011-11-01T00:00Z" end="2012-12-31T23:59Z" timezone="UTC"/>
    <inputs><input name="a" feed="b" start-instance="now(0,0)" end-instance="now(0,0)"/></inputs>
    <outputs/>
    <properties/>
    <workflow engine="oozie" path="/w" libpath="/lib"/>
    <retry policy="backoff" delay="10" delayUnit="minutes" attempts="300"/>
</process>"""


def test_ivory() -> None:
    read = data(IVORY)
    assert read["clusters"] == [
        {"name": "primary", "validity": {"start": "2011-11-01T00:00Z", "end": "2012-12-31T23:59Z"}}
    ]
    assert (read["parallel"], read["order"], read["frequency"], read["timezone"]) == (
        "1",
        "LAST_ONLY",
        "hours(2)",
        "UTC",
    )
    assert read["inputs"] == [{"name": "a", "feed": "b", "start": "now(0,0)", "end": "now(0,0)"}]
    assert read["retry"] == {"policy": "periodic", "delay": "minutes(10)", "attempts": "100"}
    assert told(IVORY, "process/workflow/@lib")
    assert "# one of them\nfrequency: hours(2)" in imported(IVORY).text().text


def test_comments_and_more_at_an_old_validity() -> None:
    validity = '<validity start="2011-11-01T00:00Z" end="2012-12-31T23:59Z" timezone="UTC"/>'
    commented = changed(IVORY, validity, f"<!-- while it lasts -->{validity}")
    assert "# while it lasts" in imported(commented).text().text
    more = changed(IVORY, validity, validity.replace("/>", "><!-- odd --><more/></validity>"))
    assert told(more, "process/validity")[0][1].endswith("(with @start, @end, @timezone, more)")
    assert "# odd" in imported(more).text().text


def test_mail_goes_to_variables_that_a_warning_tells_to_set() -> None:
    text = FEED.replace('to="a@example.com"', 'to="a@example.com, B.c@example.com"')
    assert data(text)["notification"]["to"] == [
        {"url": {"env": "MAIL_A_EXAMPLE_COM"}},
        {"url": {"env": "MAIL_B_C_EXAMPLE_COM"}},
    ]
    assert [message for _, message in told(text, "feed/notification/@to")] == [
        f"set the environment variable {name} for the daemon: mailtos://USER:PASSWORD@SMTP_SERVER?to={address}"
        for name, address in (("MAIL_A_EXAMPLE_COM", "a@example.com"), ("MAIL_B_C_EXAMPLE_COM", "B.c@example.com"))
    ]
    for nobody in ('type="email" to=" "', 'type="pager" to="a@example.com"', 'type="email"'):
        text = FEED.replace('type="email" level="attempt" to="a@example.com"', nobody)
        assert "notification" not in data(text)
        assert len(told(text, "feed/notification")) == 1
