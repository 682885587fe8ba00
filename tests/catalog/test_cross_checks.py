from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.planning.process_instance import BUILT_IN, plan_process_instance
from tests.catalog.definition_files import CLUSTERS, FEEDS, FILES, PROCESSES, changed, load, problems

VALIDITY = "{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
INPUT = '{name: flights, feed: raw, start: "now(0,0)", end: "now(0,0)"}'
OUTPUT = '{name: out, feed: delays, instance: "now(0,0)"}'


def test_right_definitions_have_no_problems(tmp_path: Path) -> None:
    store = load(tmp_path, FILES)
    assert (list(store.clusters), list(store.feeds), list(store.processes)) == (
        ["primary", "backup"],
        ["raw", "delays"],
        ["hourly"],
    )


CASES = {
    # Unknown names and places.
    "unknown_cluster_of_feed": (
        "feeds.yaml",
        "- name: backup",
        "- name: bakcup",
        ["feeds.yaml:13: clusters[1].name: unknown cluster 'bakcup' (did you mean 'backup'?)"],
    ),
    "unknown_cluster_of_process": (
        "processes.yaml",
        "- name: primary",
        "- name: nowhere",
        ["processes.yaml:5: clusters[0].name: unknown cluster 'nowhere'; legal here: primary, backup"],
    ),
    "unknown_feed_of_input": (
        "processes.yaml",
        "feed: raw",
        "feed: rwa",
        ["processes.yaml:8: inputs[0].feed: unknown feed 'rwa' (did you mean 'raw'?)"],
    ),
    "unknown_feed_of_output": (
        "processes.yaml",
        "feed: delays",
        "feed: delay",
        ["processes.yaml:10: outputs[0].feed: unknown feed 'delay' (did you mean 'delays'?)"],
    ),
    "unknown_late_input": (
        "processes.yaml",
        "{input: flights}",
        "{input: flight}",
        ["processes.yaml:12: late_process.inputs[0].input: unknown input 'flight' (did you mean 'flights'?)"],
    ),
    "feed_is_not_on_the_cluster_of_the_process": (
        "processes.yaml",
        "- name: primary",
        "- name: backup",
        [
            "processes.yaml:10: outputs[0].feed: feed 'delays' is not on cluster 'backup', where this process runs; "
            "it is on primary"
        ],
    ),
    # Names.
    "two_feeds_of_one_name": (
        "feeds.yaml",
        "name: delays",
        "name: raw",
        [
            "feeds.yaml:18: name: feed 'raw' is already defined at feeds.yaml:2",
            "processes.yaml:10: outputs[0].feed: unknown feed 'delays'; legal here: raw",
        ],
    ),
    "cluster_listed_twice": (
        "feeds.yaml",
        f"    type: target\n    validity: {VALIDITY}",
        f"    type: target\n    validity: {VALIDITY}\n  - name: backup\n    validity: {VALIDITY}",
        ["feeds.yaml:16: clusters[2].name: cluster 'backup' is listed twice, first in line 13"],
    ),
    "partition_declared_twice": (
        "feeds.yaml",
        "[carrier]",
        "[carrier, carrier]",
        ["feeds.yaml:4: partitions[1]: partition 'carrier' is declared twice, first in line 4"],
    ),
    "input_and_output_of_one_name": (
        "processes.yaml",
        "name: out,",
        "name: flights,",
        [
            "processes.yaml:10: outputs[0].name: the name 'flights' is taken by inputs[0].name in line 8: "
            "inputs and outputs share one set of names"
        ],
    ),
    "late_input_listed_twice": (
        "processes.yaml",
        "[{input: flights}]",
        "[{input: flights}, {input: flights}]",
        ["processes.yaml:12: late_process.inputs[1].input: input 'flights' is listed twice, first in line 12"],
    ),
    # Storage.
    "table_and_locations": (
        "feeds.yaml",
        "name: delays",
        'name: delays\ntable: {uri: "catalog:db:delays#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"}',
        [
            "feeds.yaml:19: table: a feed has either locations or a table, never both",
            "feeds.yaml:24: clusters[0].name: a table feed needs a registry, and cluster 'primary' declares no "
            "interfaces.registry",
        ],
    ),
    "table_of_a_cluster_and_locations": (
        "feeds.yaml",
        "    retention: {limit: days(90)}",
        '    table: {uri: "catalog:db:raw#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"}',
        [
            "feeds.yaml:9: clusters[0].name: a table feed needs a registry, and cluster 'primary' declares no "
            "interfaces.registry",
            "feeds.yaml:12: clusters[0].table: a feed has either locations or a table, never both",
        ],
    ),
    "no_location_at_all": (
        "feeds.yaml",
        "locations:\n  data: /delays/${YEAR}/${MONTH}/${DAY}/${HOUR}\n",
        "",
        [
            "feeds.yaml:21: clusters[0]: there is no location for the data on cluster 'primary': "
            "declare locations.data or a table"
        ],
    ),
    # Paths.
    "template_coarser_than_the_frequency": (
        "feeds.yaml",
        "/delays/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "/delays/${YEAR}/${DAY}",
        [
            "feeds.yaml:21: locations.data: '/delays/${YEAR}/${DAY}' is coarser than the frequency hours(1): "
            "instances would share a path without ${MONTH}, ${HOUR}"
        ],
    ),
    "a_disk_that_does_not_say_how_full_it_is": (
        "clusters.yaml",
        "endpoint: data/backup",
        "endpoint: hdfs://namenode/backup, max_usage: 85%",
        [
            "clusters.yaml:9: interfaces.write.max_usage: only file:// and paths below FALCON_HOME say how full their "
            "disk is: remove max_usage"
        ],
    ),
    "volumes_that_are_no_folders": (
        "clusters.yaml",
        "{endpoint: data/backup}",
        '{endpoints: [data/backup, "s3://bucket/x"]}',
        [
            "clusters.yaml:9: interfaces.write.endpoints[1]: this store does not say how much is free on it, by which "
            "a volume is chosen: volumes are folders on file://, below FALCON_HOME or on one HDFS; give another store "
            "a cluster of its own"
        ],
    ),
    "volumes_on_several_file_systems": (
        "clusters.yaml",
        "{endpoint: data/backup}",
        '{endpoints: ["hdfs://nn/a", "hdfs://nn:8020/b", "hdfs://other/a", "file:///mnt/b"]}',
        [
            f"clusters.yaml:9: interfaces.write.endpoints[{number}]: '{other}' is on another file system than "
            "'hdfs://nn/a': volumes are all on file:// or below FALCON_HOME, or all on one HDFS; give the other a "
            "cluster of its own"
            for number, other in ((2, "hdfs://other/a"), (3, "file:///mnt/b"))
        ],
    ),
    "volumes_within_one_another": (
        "clusters.yaml",
        "{endpoint: data/backup}",
        "{endpoints: [data/backup, data/backup/b, file:///mnt/b, file:///mnt//b/]}",
        [
            "clusters.yaml:9: interfaces.write.endpoints[1]: 'data/backup/b' and 'data/backup' must not be inside of "
            "each other, or the same",
            "clusters.yaml:9: interfaces.write.endpoints[3]: 'file:///mnt//b/' and 'file:///mnt/b' must not be inside "
            "of each other, or the same",
        ],
    ),
    "an_endpoint_besides_volumes": (
        "clusters.yaml",
        "{endpoint: data/backup}",
        "{endpoint: data/backup, endpoints: [data/a, data/b]}",
        [
            "clusters.yaml:9: interfaces.write: endpoint and endpoints exclude each other: write all volumes into "
            "endpoints"
        ],
    ),
    "one_place_to_read_several_volumes": (
        "clusters.yaml",
        "{endpoint: data/backup}",
        "{endpoints: [data/a, data/b]}, readonly: {endpoint: data/a}",
        [
            "clusters.yaml:9: interfaces.readonly: names one place, and endpoints several: remove it, so that all "
            "volumes are read"
        ],
    ),
    "archive_coarser_than_the_frequency": (
        "feeds.yaml",
        "{limit: days(90)}",
        '{limit: days(90), action: archive, archive_to: "/old/${YEAR}/${MONTH}/${DAY}"}',
        [
            "feeds.yaml:12: clusters[0].retention.archive_to: '/old/${YEAR}/${MONTH}/${DAY}' is coarser than the "
            "frequency hours(1): instances would share a path without ${HOUR}"
        ],
    ),
    "statistics_of_several_instances": (
        "feeds.yaml",
        "  data: /delays/",
        "  stats: /stats/${YEAR}\n  data: /delays/",
        [
            "feeds.yaml:21: locations.stats: '/stats/${YEAR}' is coarser than the frequency hours(1): instances would "
            "share a path without ${MONTH}, ${DAY}, ${HOUR}"
        ],
    ),
    "statistics_of_the_feed_with_an_unknown_variable": (
        "feeds.yaml",
        "  data: /delays/",
        "  stats: /stats/${cluster.color}\n  data: /delays/",
        [
            "feeds.yaml:21: locations.stats: '/stats/${cluster.color}': unknown variable '${cluster.color}' "
            "(did you mean 'cluster.colo'?) on cluster 'primary'"
        ],
    ),
    "sla_of_a_cluster_that_is_missed_before_it_warns": (
        "feeds.yaml",
        "    type: target\n",
        "    type: target\n    sla: {low: hours(2), high: hours(1)}\n",
        ["feeds.yaml:15: clusters[1].sla: low hours(2) must not be longer than high hours(1)"],
    ),
    "from_latest_to_a_time": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "latest(0)", end: "now(0,0)"}',
        [
            "processes.yaml:8: inputs[0]: start 'latest(0)' and end 'now(0,0)' must both be times, both latest(n), "
            "both future(n,limit), or a time and latest(n)"
        ],
    ),
    "from_a_time_after_the_latest": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "now(1,0)", end: "latest(0)"}',
        [
            "processes.yaml:8: inputs[0].start: input 'flights' is always empty: its start now(1,0) lies after its "
            "end latest(0)"
        ],
    ),
    "in_another_feeds_instances": (
        "feeds.yaml",
        "/delays/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/delays",
        [
            "feeds.yaml:21: locations.data: 'raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/delays' is on cluster 'primary' "
            "inside of the instances of locations.data of feed 'raw' at feeds.yaml:7"
        ],
    ),
    "unknown_variable_on_each_cluster": (
        "feeds.yaml",
        "data: /raw/",
        "data: /${cluster.color}/",
        [
            "feeds.yaml:7: locations.data: '/${cluster.color}/${YEAR}/${MONTH}/${DAY}/${HOUR}': unknown variable "
            "'${cluster.color}' (did you mean 'cluster.colo'?) on cluster 'primary'",
            "feeds.yaml:7: locations.data: '/${cluster.color}/${YEAR}/${MONTH}/${DAY}/${HOUR}': unknown variable "
            "'${cluster.color}' (did you mean 'cluster.colo'?) on cluster 'backup'",
        ],
    ),
    "two_feeds_in_one_path": (
        "feeds.yaml",
        "/delays/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "raw//${YEAR}/${MONTH}/${DAY}/${HOUR}/",
        [
            "feeds.yaml:21: locations.data: 'raw//${YEAR}/${MONTH}/${DAY}/${HOUR}/' is on cluster 'primary' the same "
            "path as locations.data of feed 'raw' at feeds.yaml:7"
        ],
    ),
    "archive_onto_itself": (
        "feeds.yaml",
        "{limit: days(90)}",
        '{limit: days(90), action: archive, archive_to: "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"}',
        [
            "feeds.yaml:12: clusters[0].retention.archive_to: '/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}' is on cluster "
            "'primary' the same path as locations.data of feed 'raw' at feeds.yaml:7"
        ],
    ),
    "staging_among_data": (
        "clusters.yaml",
        "colo: east",
        "locations: {staging: /raw/.staging}",
        [
            "clusters.yaml:3: locations.staging: 'raw/.staging' and 'raw', where feed 'raw' lies, must not be inside "
            "of each other"
        ],
    ),
    "data_among_scratch": (
        "feeds.yaml",
        "/delays/",
        "/.falcon/working/delays/",
        [
            "clusters.yaml:1: locations.working: '.falcon/working' and '.falcon/working/delays', where feed 'delays' "
            "lies, must not be inside of each other"
        ],
    ),
    # How feeds are replicated.
    "replication_options": (
        "feeds.yaml",
        "partitions: [carrier]",
        'properties:\n  maxMaps: "0"\n  preserveAcl: "true"\n  mapbandwidth: "5"\n  region: eu\npartitions: [carrier]',
        [
            "feeds.yaml:5: properties.maxMaps: '0' is not a whole number from 1 to 9999",
            "feeds.yaml:6: properties.preserveAcl: 'preserveAcl' is not an option of replication here; options: "
            "parallel, order, timeout, maxMaps, mapBandwidth, overwrite, ignoreErrors, skipChecksum, "
            "removeDeletedFiles, preservePermission, preserveTimes, preserveUser, preserveGroup",
            "feeds.yaml:7: properties.mapbandwidth: unknown property 'mapbandwidth' (did you mean 'mapBandwidth'?)",
        ],
    ),
    "object_store_without_a_flag": (
        "clusters.yaml",
        "data/backup",
        '"s3://lake/backup"',
        [
            "feeds.yaml:13: clusters[1].name: target 'backup' is not a file:// store, and is published to by setting "
            "the flag: declare availability_flag",
        ],
    ),
    # Sub-partitions and replication.
    "cluster_partition_too_deep": (
        "feeds.yaml",
        "type: source",
        'type: source\n    partition: "${cluster.colo}/AA"',
        [
            "feeds.yaml:11: clusters[0].partition: '${cluster.colo}/AA' is deeper than feed 'raw' is partitioned "
            "(partitions: carrier)"
        ],
    ),
    "source_and_target_partition_too_deep_together": (
        "feeds.yaml",
        f"type: source\n    validity: {VALIDITY}\n    retention: {{limit: days(90)}}\n  - name: backup\n",
        f"type: source\n    partition: AA\n    validity: {VALIDITY}\n  - name: backup\n    partition: '*'\n",
        [
            "feeds.yaml:14: clusters[1].partition: '*' below 'AA' of source 'primary' is deeper than feed 'raw' is "
            "partitioned (partitions: carrier)"
        ],
    ),
    "input_partition_too_deep": (
        "processes.yaml",
        "feed: raw,",
        'feed: raw, partition: "*/US",',
        [
            "processes.yaml:8: inputs[0].partition: '*/US' is deeper than feed 'raw' is partitioned "
            "(partitions: carrier)"
        ],
    ),
    "unknown_variable_in_partition": (
        "feeds.yaml",
        "type: source",
        'type: source\n    partition: "${colo}"',
        ["feeds.yaml:11: clusters[0].partition: '${colo}': unknown variable '${colo}' on cluster 'primary'"],
    ),
    "expression_in_partition_of_a_cluster": (
        "feeds.yaml",
        "type: source",
        'type: source\n    partition: "${now(0,0)}"',
        ["feeds.yaml:11: clusters[0].partition: '${now(0,0)}': only variables may stand in a partition, not now(...)"],
    ),
    "unknown_variable_in_partition_of_an_input": (
        "processes.yaml",
        "feed: raw,",
        'feed: raw, partition: "${cluster.color}",',
        [
            "processes.yaml:8: inputs[0].partition: '${cluster.color}': unknown variable '${cluster.color}' "
            "(did you mean 'cluster.colo'?) on cluster 'primary'"
        ],
    ),
    "several_sources_without_partition": (
        "feeds.yaml",
        "type: target",
        "type: source",
        [
            "feeds.yaml:9: clusters[0].partition: source cluster 'primary' needs a partition expression, as there are "
            "2 source clusters",
            "feeds.yaml:13: clusters[1].partition: source cluster 'backup' needs a partition expression, as there are "
            "2 source clusters",
        ],
    ),
    "several_sources_with_one_partition": (
        "feeds.yaml",
        f"type: source\n    validity: {VALIDITY}\n    retention: {{limit: days(90)}}\n  - name: backup\n"
        "    type: target",
        f"type: source\n    partition: east\n    validity: {VALIDITY}\n  - name: backup\n    type: source\n"
        "    partition: east",
        [
            "feeds.yaml:15: clusters[1].partition: 'east' is 'east' here and on source cluster 'primary': "
            "each source needs its own"
        ],
    ),
    "throttle_of_a_source": (
        "feeds.yaml",
        "    type: source\n",
        "    type: source\n    throttle: {bytes_per_second: 1000}\n",
        ["feeds.yaml:11: clusters[0].throttle: is for clusters that are replicated to: type: target"],
    ),
    "target_without_source": (
        "feeds.yaml",
        "    type: source\n",
        "",
        ["feeds.yaml:13: clusters[1].type: a target needs a source: no cluster has type: source"],
    ),
    # Retention and lateness.
    "archive_on_another_cluster": (
        "feeds.yaml",
        "{limit: days(90)}",
        '{limit: days(90), action: archive, archive_cluster: bakcup, archive_to: "/a/${YEAR}/${MONTH}${DAY}${HOUR}"}',
        [
            "feeds.yaml:12: clusters[0].retention.archive_cluster: unknown cluster 'bakcup' (did you mean 'backup'?)",
        ],
    ),
    "archive_onto_the_replica": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limit: days(90), action: archive, archive_cluster: backup, "
        'archive_to: "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"}',
        [
            "feeds.yaml:7: locations.data: '/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}' is on cluster 'backup' the same path "
            "as clusters[0].retention.archive_to of feed 'raw' at feeds.yaml:12"
        ],
    ),
    "archive_in_the_instance": (
        "feeds.yaml",
        "{limit: days(90)}",
        '{limit: days(90), action: archive, archive_to: "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/old"}',
        [
            "feeds.yaml:12: clusters[0].retention.archive_to: 'raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/old' and the data "
            "at 'raw/${YEAR}/${MONTH}/${DAY}/${HOUR}' must not be inside of each other"
        ],
    ),
    "instance_in_the_archive": (
        "feeds.yaml",
        "data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}\nclusters:\n  - name: primary\n    type: source\n"
        f"    validity: {VALIDITY}\n    retention: {{limit: days(90)}}",
        "data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/now\nclusters:\n  - name: primary\n    type: source\n"
        f"    validity: {VALIDITY}\n"
        '    retention: {limit: days(90), action: archive, archive_to: "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"}',
        [
            "feeds.yaml:12: clusters[0].retention.archive_to: 'raw/${YEAR}/${MONTH}/${DAY}/${HOUR}' and the data at "
            "'raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/now' must not be inside of each other"
        ],
    ),
    "lifecycle_without_retention": (
        "feeds.yaml",
        "name: delays\n",
        "name: delays\nlifecycle: {retention: {frequency: hours(6)}}\n",
        [
            "feeds.yaml:19: lifecycle.retention: no cluster of the feed declares retention, so there is nothing to "
            "look for"
        ],
    ),
    "lifecycle_of_a_cluster_without_retention": (
        "feeds.yaml",
        "- name: backup\n",
        "- name: backup\n    lifecycle: {retention: {frequency: hours(6)}}\n",
        [
            "feeds.yaml:14: clusters[1].lifecycle.retention: cluster 'backup' declares no retention, so there is "
            "nothing to look for"
        ],
    ),
    "limit_below_the_cut_off": (
        "feeds.yaml",
        "days(90)",
        "minutes(359)",
        [
            "feeds.yaml:12: clusters[0].retention.limit: minutes(359) must not be shorter than "
            "late_arrival.cut_off, which is hours(6)"
        ],
    ),
    "late_input_without_cut_off": (
        "feeds.yaml",
        "late_arrival: {cut_off: hours(6)}\n",
        "",
        [
            "processes.yaml:12: late_process.inputs[0].input: feed 'raw' declares no late_arrival.cut_off, "
            "so input 'flights' is never late"
        ],
    ),
    # Producers and cycles.
    "two_outputs_to_one_feed": (
        "processes.yaml",
        f"- {OUTPUT}",
        f'- {OUTPUT}\n  - {{name: again, feed: delays, instance: "now(-1,0)"}}',
        [
            "processes.yaml:11: outputs[1].feed: feed 'delays' is already written by output 'out' of this process",
            "processes.yaml:11: warning: outputs[1].instance: instances before 2013-01-01T01:00Z do not run on cluster "
            "'primary': output 'again' lies outside the validity of feed 'delays' there, 2013-01-01T00:00Z to "
            "2014-01-01T00:00Z",
        ],
    ),
    "setting_of_a_whole_application": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nproperties: {spark.sql.shuffle.partitions: '3', spark.executor.memory: 4g, spark.mine: x}\n",
        [
            "processes.yaml:3: properties.spark.executor.memory: Spark reads spark.executor.memory when it starts, and "
            "spark-sql runs in the session of its cluster: declare it in the properties of the cluster 'primary', or "
            "run a program (spark-submit)"
        ],
    ),
    "reads_its_own_output": (
        "processes.yaml",
        f"- {INPUT}",
        f'- {INPUT}\n  - {{name: before, feed: delays, start: "now(-1,0)", end: "now(0,0)"}}',
        [
            "processes.yaml:9: inputs[1].feed: dependency cycle: delays -> hourly -> delays (on cluster 'primary'): "
            "hourly 2013-01-01T00:00Z would wait for itself; read earlier ones only"
        ],
    ),
    "reads_what_it_may_write_when_it_is_run_again": (
        "processes.yaml",
        f"- {INPUT}",
        f'- {INPUT}\n  - {{name: before, feed: delays, start: "latest(0)", end: "latest(0)", optional: true}}',
        [
            "processes.yaml:9: inputs[1].feed: dependency cycle: delays -> hourly -> delays (on cluster 'primary'): "
            "hourly 2013-01-01T00:00Z would wait for itself; read earlier ones only"
        ],
    ),
    "reads_its_own_future": (
        "processes.yaml",
        f"- {INPUT}",
        f'- {INPUT}\n  - {{name: next, feed: delays, start: "now(1,0)", end: "now(1,0)"}}',
        [
            "processes.yaml:9: inputs[1].feed: dependency cycle: delays -> hourly -> delays (on cluster 'primary'): "
            "hourly 2013-01-01T00:00Z would wait for its later instance 2013-01-01T01:00Z; read earlier ones only"
        ],
    ),
    # Windows.
    "window_before_the_validity": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "now(-9000,0)", end: "now(-8760,0)"}',
        [
            "processes.yaml:8: inputs[0].start: input 'flights' never falls inside the validity of feed 'raw' on "
            "cluster 'primary', 2013-01-01T00:00Z to 2014-01-01T00:00Z: it reaches from 2011-12-23T00:00Z to "
            "2012-12-31T23:00Z"
        ],
    ),
    "window_after_the_validity": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "now(8760,0)", end: "now(8760,0)"}',
        [
            "processes.yaml:8: inputs[0].start: input 'flights' never falls inside the validity of feed 'raw' on "
            "cluster 'primary', 2013-01-01T00:00Z to 2014-01-01T00:00Z: it reaches from 2014-01-01T00:00Z to "
            "2014-12-31T23:00Z"
        ],
    ),
    "window_that_ends_before_it_starts": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "today(5,0)", end: "today(3,0)"}',
        [
            "processes.yaml:8: inputs[0].start: input 'flights' is always empty: its start today(5,0) lies after its "
            "end today(3,0)"
        ],
    ),
    "latest_that_ends_before_it_starts": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "latest(0)", end: "latest(-1)"}',
        [
            "processes.yaml:8: inputs[0].start: input 'flights' is always empty: its start latest(0) lies after its "
            "end latest(-1)"
        ],
    ),
    "window_outside_of_the_calendar": (
        "processes.yaml",
        INPUT,
        '{name: flights, feed: raw, start: "lastYear(-99999,0,0,0)", end: "now(0,0)"}',
        [
            "processes.yaml:8: inputs[0].start: input 'flights' has no value: lastYear(...) at "
            "2013-01-01T00:00Z lies outside the years 1 to 9999"
        ],
    ),
    "output_outside_of_the_validity": (
        "processes.yaml",
        OUTPUT,
        '{name: out, feed: delays, instance: "lastYear(0,0,0,0)"}',
        [
            "processes.yaml:10: outputs[0].instance: output 'out' never falls inside the validity of feed 'delays' on "
            "cluster 'primary', 2013-01-01T00:00Z to 2014-01-01T00:00Z: it reaches from 2012-01-01T00:00Z to "
            "2012-01-01T00:00Z"
        ],
    ),
    "process_before_its_feeds": (
        "processes.yaml",
        VALIDITY,
        "{start: 2012-01-01T00:00Z, end: 2013-01-01T00:00Z}",
        [
            "processes.yaml:8: inputs[0].start: input 'flights' never falls inside the validity of feed 'raw' on "
            "cluster 'primary', 2013-01-01T00:00Z to 2014-01-01T00:00Z: it reaches from 2012-01-01T00:00Z to "
            "2012-12-31T23:00Z",
            "processes.yaml:10: outputs[0].instance: output 'out' never falls inside the validity of feed 'delays' on "
            "cluster 'primary', 2013-01-01T00:00Z to 2014-01-01T00:00Z: it reaches from 2012-01-01T00:00Z to "
            "2012-12-31T23:00Z",
        ],
    ),
    # Workflows.
    "workflow_file_is_missing": (
        "processes.yaml",
        "hourly.sql",
        "sql/hourly.sql",
        ["processes.yaml:11: workflow.path: 'sql/hourly.sql' is not a file in the folder of the entity definitions, ."],
    ),
    "workflow_file_outside_of_the_root": (
        "processes.yaml",
        "hourly.sql",
        "../hourly.sql",
        ["processes.yaml:11: workflow.path: '../hourly.sql' points outside the folder of the entity definitions, ."],
    ),
    "late_workflow_file_is_missing": (
        "processes.yaml",
        "{input: flights}",
        "{input: flights, workflow: {engine: pyspark, path: late.py}}",
        [
            "processes.yaml:12: late_process.inputs[0].workflow.path: 'late.py' is not a file in the folder of the "
            "entity definitions, ."
        ],
    ),
    "argument_that_cannot_be_read": (
        "processes.yaml",
        "{engine: spark-sql, path: hourly.sql}",
        '{engine: spark-submit, path: hourly.sql, args: [--day, "${formatDate(instanceTime())}"]}',
        [
            "processes.yaml:11: workflow.args[1]: 'formatDate(instanceTime())' is not a legal expression: unknown "
            "function 'formatDate' (did you mean 'formatTime'?); known: currentMonth, currentWeek, currentYear, "
            "dateOffset, formatTime, future, instanceTime, lastMonth, lastWeek, lastYear, latest, now, today, user, "
            "watermark, yesterday"
        ],
    ),
    "argument_with_unknown_variable": (
        "processes.yaml",
        "{engine: spark-sql, path: hourly.sql}",
        '{engine: spark-submit, path: hourly.sql, args: ["${flihgts}", "${out}", "${nominalTime}"]}',
        [
            "processes.yaml:11: workflow.args[0]: '${flihgts}': unknown variable '${flihgts}' "
            "(did you mean 'flights'?) on cluster 'primary'"
        ],
    ),
    "property_with_unknown_variable": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nproperties: {day: '${nominaltime}'}\n",
        [
            "processes.yaml:3: properties.day: '${nominaltime}': unknown variable '${nominaltime}' "
            "(did you mean 'nominal_time'?) on cluster 'primary'"
        ],
    ),
    "property_that_has_no_value": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nproperties: {day: '${latest(0)}'}\n",
        ["processes.yaml:3: properties.day: latest(...) gives available instances, not a time on cluster 'primary'"],
    ),
    "property_that_cannot_be_read": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nproperties: {day: '${nominalTime'}\n",
        ["processes.yaml:3: properties.day: '${nominalTime': a '${' is not closed"],
    ),
}


@pytest.mark.parametrize(("file", "old", "new", "expected"), CASES.values(), ids=CASES)
def test_problem(tmp_path: Path, file: str, old: str, new: str, expected: list[str]) -> None:
    assert problems(tmp_path, changed(file, old, new)) == expected


def test_outputs_that_never_exist_together(tmp_path: Path) -> None:
    early, lately = (
        FEEDS.split("---\n")[1].replace("delays", name).replace("2013-01-01T00:00Z, end: 2014-01-01T00:00Z", life)
        for name, life in (
            ("early", "2013-01-01T00:00Z, end: 2013-02-01T00:00Z"),
            ("lately", "2013-12-01T00:00Z, end: 2014-01-01T00:00Z"),
        )
    )
    more = "\n".join(
        f"  - {OUTPUT.replace('out,', f'{name},').replace('delays', name)}" for name in ("early", "lately")
    )
    files = changed("processes.yaml", f"  - {OUTPUT}", more) | {"more.yaml": f"{early}---\n{lately}"}
    assert problems(tmp_path, files) == [
        "processes.yaml:9: outputs: never exist together on cluster 'primary', so nothing runs: "
        "early: 2013-01-01T00:00Z to 2013-01-31T23:00Z; lately: 2013-12-01T00:00Z to 2013-12-31T23:00Z"
    ]


LEGAL = {
    "window_partly_before_the_validity": (
        INPUT,
        '{name: flights, feed: raw, start: "now(-8759,0)", end: "now(-8000,0)"}',
    ),
    "window_of_the_past_year": (INPUT, '{name: flights, feed: raw, start: "lastYear(0,0,0,0)", end: "today(0,0)"}'),
    "window_that_is_rarely_ordered": (
        INPUT,
        '{name: flights, feed: raw, start: "currentMonth(29,0,0)", end: "today(0,0)"}',
    ),
    "latest": (INPUT, '{name: flights, feed: raw, start: "latest(-2)", end: "latest(0)"}'),
    "from_a_time_to_the_latest": (INPUT, '{name: flights, feed: raw, start: "today(0,0)", end: "latest(0)"}'),
    "future": (INPUT, '{name: flights, feed: raw, start: "future(0,10)", end: "future(1,10)"}'),
    "partition_with_variable": ("feed: raw,", 'feed: raw, partition: "${cluster.colo}",'),
    "partition_with_expression": ("feed: raw,", "feed: raw, partition: \"${formatTime(instanceTime(),'yyyy/MM')}\","),
    "partition_with_property": (
        f"inputs:\n  - {INPUT}",
        "properties: {carrier: AA, day: \"${formatTime(instanceTime(),'dd')} ${nominal_time} ${process.name}\"}\n"
        'inputs:\n  - {name: flights, feed: raw, partition: "${carrier}", start: "now(0,0)", end: "now(0,0)"}',
    ),
}


def test_statistics_and_metadata_of_feeds_are_in_nobodys_way(tmp_path: Path) -> None:
    """Falcon's own definitions say ``/none`` for all of them."""
    feeds = FEEDS.replace("  data: /", "  stats: /none\n  meta: /raw\n  data: /")
    archive = "{limit: hours(6), action: archive, archive_to: '/none/${YEAR}-${MONTH}-${DAY}-${HOUR}'}"
    load(tmp_path, {**FILES, "feeds.yaml": feeds.replace("{limit: days(90)}", archive)})


def test_limit_equal_to_the_cut_off_and_sla_of_a_cluster(tmp_path: Path) -> None:
    feeds = FEEDS.replace("days(90)", "hours(6)")
    feeds = feeds.replace("    type: target\n", "    type: target\n    sla: {low: hours(1), high: hours(2)}\n")
    feed = load(tmp_path, {**FILES, "feeds.yaml": feeds}).feed("raw")
    assert [str(sla.high) if (sla := feed.sla_on(name)) else None for name in ("primary", "backup")] == [
        None,
        "hours(2)",
    ]


@pytest.mark.parametrize(("old", "new"), LEGAL.values(), ids=LEGAL)
def test_legal(tmp_path: Path, old: str, new: str) -> None:
    load(tmp_path, changed("processes.yaml", old, new))


@pytest.mark.parametrize(
    ("validity", "start", "end", "message"),
    [
        pytest.param(
            "{start: 2012-01-01T00:00Z, end: 2012-02-01T00:00Z}",
            "latest(0)",
            "latest(0)",
            "it looks back from 2012-01-31T23:00Z at the latest",
            id="latest_before_the_feed",
        ),
        pytest.param(
            "{start: 2014-01-01T00:00Z, end: 2014-02-01T00:00Z}",
            "future(0,5)",
            "future(2,5)",
            "it looks ahead from 2014-01-01T00:00Z at the earliest",
            id="future_after_the_feed",
        ),
    ],
)
def test_lookups_that_never_find_anything(tmp_path: Path, validity: str, start: str, end: str, message: str) -> None:
    files = changed("processes.yaml", INPUT, f'{{name: flights, feed: raw, start: "{start}", end: "{end}"}}')
    files["processes.yaml"] = files["processes.yaml"].replace(VALIDITY, validity)
    assert problems(tmp_path, files)[0] == (
        "processes.yaml:8: inputs[0].start: input 'flights' never falls inside the validity of feed 'raw' on cluster "
        f"'primary', 2013-01-01T00:00Z to 2014-01-01T00:00Z: {message}"
    )


def test_second_producer_names_the_first(tmp_path: Path) -> None:
    second = PROCESSES.replace("name: hourly", "name: other")
    assert problems(tmp_path, {**FILES, "second.yaml": second}) == [
        "second.yaml:10: outputs[0].feed: feed 'delays' on cluster 'primary' is already produced by process 'hourly' "
        "at processes.yaml:10"
    ]


def test_output_to_a_replication_target(tmp_path: Path) -> None:
    feeds = FEEDS.replace("name: delays", "name: delays-2") + "---\n" + FEEDS.partition("---")[0]
    feeds = feeds.replace("name: raw", "name: delays", 1).replace("/raw/", "/copied/", 1)
    process = PROCESSES.replace("feed: raw", "feed: raw").replace("- name: primary", "- name: backup")
    assert problems(tmp_path, {**FILES, "feeds.yaml": feeds, "processes.yaml": process}) == [
        "processes.yaml:10: outputs[0].feed: feed 'delays' on cluster 'backup' is filled by replication (type: "
        "target), so no process can produce it there"
    ]


def test_cycle_of_two_processes_is_printed_once(tmp_path: Path) -> None:
    back = PROCESSES.replace("name: hourly", "name: back").replace("feed: raw", "feed: SWAP")
    back = back.replace("feed: delays", "feed: raw").replace("feed: SWAP", "feed: delays").replace("late_process", "# ")
    assert problems(tmp_path, {**FILES, "back.yaml": back}) == [
        "back.yaml:8: inputs[0].feed: dependency cycle: delays -> back -> raw -> hourly -> delays "
        "(on cluster 'primary'): back 2013-01-01T00:00Z would wait for itself; read earlier ones only"
    ]


def test_cycle_through_replication_names_the_clusters(tmp_path: Path) -> None:
    one_way = FEEDS.partition("---")[0]
    other_way = one_way.replace("name: primary", "name: SWAP").replace("name: backup", "name: primary")
    other_way = other_way.replace("name: SWAP", "name: backup").replace("raw", "delays")
    there = PROCESSES.replace("- name: primary", "- name: backup")
    back = PROCESSES.replace("name: hourly", "name: back").replace("feed: raw", "feed: SWAP")
    back = back.replace("feed: delays", "feed: raw").replace("feed: SWAP", "feed: delays")
    files = {**FILES, "feeds.yaml": f"{one_way}---\n{other_way}", "processes.yaml": f"{there}---\n{back}"}
    assert problems(tmp_path, files) == [
        "processes.yaml:21: inputs[0].feed: dependency cycle: delays@primary -> back@primary -> raw@primary -> "
        "raw@backup -> hourly@backup -> delays@backup -> delays@primary: back 2013-01-01T00:00Z would wait for itself; "
        "read earlier ones only"
    ]


def test_a_cycle_of_two_processes_that_goes_back_in_time_is_none(tmp_path: Path) -> None:
    back = PROCESSES.replace("name: hourly", "name: back").replace("feed: raw", "feed: SWAP")
    back = back.replace("feed: delays", "feed: raw").replace("feed: SWAP", "feed: delays").replace("late_process", "# ")
    store = load(
        tmp_path, {**FILES, "back.yaml": back.replace('"now(0,0)", end: "now(0,0)"', '"today(0,0)", end: "now(-1,0)"')}
    )
    assert store.relations.left_out == {(("feed", "delays", "primary"), ("process", "back", "primary"))}


def test_what_workflows_bring_along(tmp_path: Path) -> None:
    lib = "[a.jar, b.txt, none.py, full, empty, ../x]"
    own = f"{{engine: spark-sql, path: hourly.sql, name: w, version: '1.0', lib: {lib}}}"
    files = {
        **FILES,
        "processes.yaml": PROCESSES.replace("{engine: spark-sql, path: hourly.sql}", own),
        "a.jar": "",
        "b.txt": "",
        "full/c.py": "",
        "empty/d.txt": "",
    }
    assert problems(tmp_path, files) == [
        "processes.yaml:11: workflow.lib[1]: 'b.txt' is neither a jar nor Python: write .jar, .py, .zip, .egg, or a "
        "folder of them",
        "processes.yaml:11: workflow.lib[2]: 'none.py' is not a file in the folder of the entity definitions, .",
        "processes.yaml:11: workflow.lib[4]: there is no jar and no Python file in the folder 'empty'",
        "processes.yaml:11: workflow.lib[5]: '../x' points outside the folder of the entity definitions, .",
    ]


@pytest.mark.parametrize(
    ("batch", "feeds", "outputs", "why"),
    [
        (
            "true",
            FEEDS.replace("name: raw\n", "name: raw\nschema: 'a int, Falcon_Instance string'\n"),
            "",
            "feed 'raw' has a column falcon_instance of its own: give it another name",
        ),
        (
            "true",
            FEEDS,
            "outputs: []",
            "a process without outputs has nothing by which instances could be told apart: leave batch out",
        ),
        (
            "arrow",
            FEEDS,
            "",
            "Spark has to know the columns before the function is called: declare `schema` in delays",
        ),
        (
            "arrow",
            FEEDS,
            "outputs: []",
            "a function of Arrow tables makes one output, and there are 0: leave batch out",
        ),
    ],
)
def test_batches_that_do_not_fit(tmp_path: Path, batch: str, feeds: str, outputs: str, why: str) -> None:
    workflow = f"{{engine: pyspark, path: a.py, batch: {batch}}}"
    process = PROCESSES.replace("{engine: spark-sql, path: hourly.sql}", workflow)
    if outputs:
        process = process.replace('outputs:\n  - {name: out, feed: delays, instance: "now(0,0)"}', outputs)
    files = {**FILES, "feeds.yaml": feeds, "processes.yaml": process, "a.py": "def run(): ..."}
    assert [one.partition("workflow.batch: ")[2] for one in problems(tmp_path, files)] == [why]


@pytest.mark.parametrize(
    ("endpoint", "settings", "refused"),
    [
        ("local[2]", "spark.executor.memory: 4g, spark.sql.warehouse.dir: /x", []),
        ("sc://h:1", "spark.sql.shuffle.partitions: '3'", []),
        ("sc://h:1", "spark.sql.warehouse.dir: /x, spark.mine: x", ["spark.sql.warehouse.dir", "spark.mine"]),
    ],
)
def test_settings_of_programs(tmp_path: Path, endpoint: str, settings: str, refused: list[str]) -> None:
    process = PROCESSES.replace("{engine: spark-sql, path: hourly.sql}", "{engine: spark-submit, path: hourly.sql}")
    files = {
        **FILES,
        "clusters.yaml": CLUSTERS.replace("local[2]", endpoint, 1),
        "processes.yaml": process + f"properties: {{{settings}}}\n",
    }
    if not refused:
        load(tmp_path, files)
        return
    assert problems(tmp_path, files) == [
        f"processes.yaml:13: properties.{key}: Spark reads {key} when it starts, and a program on the Spark Connect "
        "server of cluster 'primary' only talks to it: set it there"
        for key in refused
    ]


def test_a_process_that_reads_earlier_instances_of_its_output(tmp_path: Path) -> None:
    own = f'- {INPUT}\n  - {{name: before, feed: delays, start: "now(-3,0)", end: "now(-1,0)"}}'
    assert load(tmp_path, changed("processes.yaml", f"- {INPUT}", own)).relations.left_out == frozenset()


@pytest.mark.parametrize(
    ("own", "order", "expected"),
    [
        ("", "FIFO", []),
        (", optional: true", "LAST_ONLY", []),
        (
            "",
            "LAST_ONLY",
            [
                "processes.yaml:4: order: LAST_ONLY would skip what others wait for: instances wait for earlier ones "
                "of their own (input 'before'); use FIFO"
            ],
        ),
        (
            "",
            "LIFO",
            [
                "processes.yaml:4: order: LIFO does not put the newest first here: instances wait for earlier ones of "
                "their own (input 'before')"
            ],
        ),
    ],
)
def test_orders_of_a_process_that_reads_its_own_output(
    tmp_path: Path, own: str, order: str, expected: list[str]
) -> None:
    process = PROCESSES.replace("hours(1)\n", f"hours(1)\norder: {order}\n").replace(
        f"- {INPUT}", f'- {INPUT}\n  - {{name: before, feed: delays, start: "now(-1,0)", end: "now(-1,0)"{own}}}'
    )
    feeds = FEEDS.replace("name: delays\n", "name: delays\nschema: n int\n")
    files = {**FILES, "processes.yaml": process, "feeds.yaml": feeds}
    if expected:
        assert problems(tmp_path, files, strict=True) == expected
    else:
        load(tmp_path, files, strict=True)


def test_an_own_output_without_columns_at_the_first_instance(tmp_path: Path) -> None:
    own = f'- {INPUT}\n  - {{name: before, feed: delays, start: "now(-1,0)", end: "now(-1,0)"}}'
    assert problems(tmp_path, changed("processes.yaml", f"- {INPUT}", own), strict=True) == [
        "processes.yaml:9: inputs[1].feed: feed 'delays' has no instance for the first run, and an empty input has no "
        "columns: declare `schema:` in the feed"
    ]


def test_table_feed_with_registry_is_legal(tmp_path: Path) -> None:
    registry = 'execute: {endpoint: "local[2]"}, registry: {endpoint: "thrift://h:9083"}'
    clusters = FILES["clusters.yaml"].replace('execute: {endpoint: "local[2]"}', registry)
    table = FEEDS.partition("---")[0].replace("name: raw", "name: counts").replace("locations:", "table:")
    table = table.replace("partitions: [carrier]\n", "")
    table = table.replace(
        "data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", 'uri: "catalog:db:t#h=${YEAR}${MONTH}${DAY}${HOUR}"'
    )
    load(tmp_path, {**FILES, "clusters.yaml": clusters, "table.yaml": table})
    spread = clusters.replace("{endpoint: data/primary}", "{endpoints: [data/a, data/b]}")
    assert [str(one) for one in problems(tmp_path, {**FILES, "clusters.yaml": spread, "table.yaml": table})] == [
        "table.yaml:8: clusters[0].name: a table lies where its catalog says, and cluster 'primary' spreads files over "
        "volumes: put the feed on a cluster with one endpoint"
    ]
    files = {**FILES, "clusters.yaml": clusters.replace("thrift://h:9083", "http://h:9083")}
    flagged = table.replace("frequency:", "partitions: [carrier]\navailability_flag: DONE\nfrequency:")
    rule = (
        "interfaces.registry.endpoint: 'http' is not a registry of tables: write thrift://host:port (a Hive "
        "Metastore), iceberg+postgresql://user@host/database#catalog (Iceberg in a database) or "
        "iceberg+https://host/path#warehouse (Iceberg's REST service)"
    )
    where = "feed 'counts' is a table on cluster"
    assert problems(tmp_path / "other", {**files, "table.yaml": flagged}) == [
        f"clusters.yaml:4: {rule}",
        f"clusters.yaml:9: {rule}",
        "table.yaml:3: partitions: the uri of a table says how it is partitioned",
        "table.yaml:4: availability_flag: a partition of a table is complete when it exists: remove availability_flag",
    ]
    several = table.replace("${HOUR}", "${HOUR};region=*")
    load(tmp_path / "several", {**FILES, "clusters.yaml": clusters, "table.yaml": several})
    own = f'{several.rstrip()}\n    table: {{uri: "catalog:db:t#h=${{YEAR}}${{MONTH}}${{DAY}}${{HOUR}};region=US"}}\n'
    assert problems(tmp_path / "own", {**FILES, "clusters.yaml": clusters, "table.yaml": own}) == [
        f"table.yaml:13: clusters[1].type: {where} 'backup', and the keys that are * have to be those of the source: "
        "region"
    ]
    archive = '{limit: days(90), action: archive, archive_to: "/old/${YEAR}/${MONTH}/${DAY}/${HOUR}"}'
    old = table.replace("{limit: days(90)}", archive)
    load(tmp_path / "old", {**FILES, "clusters.yaml": clusters, "table.yaml": old})
    kept = old.replace("    type: source\n", "")
    kept = kept[: kept.index("  - name: backup")]
    on_s3 = clusters.replace("data/primary", "s3://primary")
    said = problems(tmp_path / "s3", {**FILES, "clusters.yaml": on_s3, "table.yaml": kept})
    assert not [one for one in said if one.startswith("table.yaml")]
    on_hdfs = clusters.replace("data/primary", "hdfs://primary").replace("data/backup", "hdfs://backup")
    for name, feed in {"archived": kept, "copied": table}.items():
        load(tmp_path / f"hdfs-{name}", {**FILES, "clusters.yaml": on_hdfs, "table.yaml": feed})
    iceberg = on_hdfs.replace("thrift://h:9083", "iceberg+https://h/api")
    assert problems(tmp_path / "iceberg", {**FILES, "clusters.yaml": iceberg, "table.yaml": table})[-1:] == [
        f"table.yaml:13: clusters[1].type: {where} 'backup', and Iceberg tables cannot be written on HDFS, which "
        "PyIceberg does not support: use a Hive table"
    ]
    far = clusters.replace("data/primary", "sftp://primary")
    assert problems(tmp_path / "kept", {**FILES, "clusters.yaml": far, "table.yaml": kept})[-1:] == [
        f"table.yaml:10: clusters[0].retention.action: {where} 'primary', and tables are archived where their cluster "
        "is a file://, on HDFS or an object store",
    ]
    csv = table.replace("frequency:", "format: csv\nfrequency:")
    assert problems(tmp_path / "csv", {**FILES, "clusters.yaml": clusters, "table.yaml": csv}) == [
        f"table.yaml:14: clusters[1].type: {where} 'backup', and tables are written in parquet and orc, not in csv"
    ]
    said = problems(tmp_path / "source", {**FILES, "clusters.yaml": on_s3, "table.yaml": table})
    assert not [one for one in said if one.startswith("table.yaml")]
    lake = clusters.replace("name: backup", "name: backup").replace("data/backup", "s3://backup")
    said = problems(tmp_path / "target", {**FILES, "clusters.yaml": lake, "table.yaml": table})
    assert not [one for one in said if one.startswith("table.yaml")]
    lake = lake.replace("s3://backup", "sftp://backup")
    assert problems(tmp_path / "lake", {**FILES, "clusters.yaml": lake, "table.yaml": table})[-1:] == [
        f"table.yaml:13: clusters[1].type: {where} 'backup', and tables are written where their cluster is a file://, "
        "on HDFS or an object store"
    ]


@pytest.mark.parametrize(
    ("source", "target", "kinds"),
    [
        ("data/primary", "s3://backup", "'primary' is file://, 'backup' is another store"),
        ("data/primary", "hdfs://h/backup", "'primary' is file://, 'backup' is HDFS"),
        ("hdfs://h/primary", "hdfs://other/backup", ""),
        ("data/primary", "data/backup", ""),
    ],
)
def test_attributes_of_files_are_preserved_between_stores_of_one_kind(
    tmp_path: Path, source: str, target: str, kinds: str
) -> None:
    clusters = FILES["clusters.yaml"].replace("data/primary", source).replace("data/backup", target)
    feeds = FEEDS.replace("partitions: [carrier]", 'properties: {preserveUser: "true"}\navailability_flag: _DONE', 1)
    files = {**FILES, "clusters.yaml": clusters, "feeds.yaml": feeds}
    if not kinds:
        load(tmp_path, files)
        return
    assert [one for one in problems(tmp_path, files) if "preserve" in one] == [
        "feeds.yaml:4: properties.preserveUser: attributes of files are preserved from file:// to file:// and from "
        f"HDFS to HDFS only, and {kinds}: remove preserveUser"
    ]


REGISTRIES = {
    "rest": ('"iceberg+https://h/api", storage_options: {token: {env: X}}', None),
    "hive": (
        '"thrift://h:9083", storage_options: {token: {env: X}}',
        "only Iceberg's REST services (iceberg+https://...) take options",
    ),
    "no_options": ('"iceberg+https://h/api", storage_options: hunter2', "must be a mapping (key: value)"),
    "list": (
        '"iceberg+https://h/api", storage_options: {token: [hunter2]}',
        "must be {env: NAME}, {file: PATH}, {encrypted: ...}, a text, a whole number, or true or false",
    ),
}


@pytest.mark.parametrize(("registry", "rule"), REGISTRIES.values(), ids=REGISTRIES)
def test_options_of_registries(tmp_path: Path, registry: str, rule: str | None) -> None:
    execute = 'execute: {endpoint: "local[2]"}'
    clusters = FILES["clusters.yaml"].replace(execute, f"{execute}, registry: {{endpoint: {registry}}}")
    table = FEEDS.partition("---")[0].replace("name: raw", "name: counts").replace("locations:", "table:")
    table = table.replace("partitions: [carrier]\n", "").replace(
        "data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", 'uri: "catalog:db:t#h=${YEAR}${MONTH}${DAY}${HOUR}"'
    )
    if rule is None:
        load(tmp_path, {**FILES, "clusters.yaml": clusters, "table.yaml": table})
        return
    found = problems(tmp_path, {**FILES, "clusters.yaml": clusters, "table.yaml": table})
    assert "hunter2" not in str(found)
    assert len(found) >= 2 and all("interfaces.registry.storage_options" in one and rule in one for one in found[:2])


def test_nothing_is_said_about_entities_that_could_not_be_parsed(tmp_path: Path) -> None:
    assert problems(
        tmp_path, changed("feeds.yaml", "name: raw\nfrequency: hours(1)", "name: raw\nfrequency: hourly")
    ) == [
        "feeds.yaml:3: frequency: 'hourly' is not a frequency: write minutes(n), hours(n), days(n) or months(n) with a "
        "whole n > 0"
    ]


def test_nothing_is_said_about_entities_in_a_file_with_a_syntax_error(tmp_path: Path) -> None:
    assert problems(tmp_path, changed("feeds.yaml", "partitions: [carrier]", "partitions: [carrier")) == [
        "feeds.yaml:5: not YAML: did not find expected ',' or ']'"
    ]


def test_built_in_variables_are_those_that_instances_are_told(tmp_path: Path) -> None:
    store = load(tmp_path, FILES)
    process, cluster = store.process("hourly"), store.cluster("primary")
    start = process.clusters[0].validity.start
    instance = plan_process_instance(process, cluster, store.feeds, start, user="", available=lambda _: lambda _: True)
    assert set(instance.properties) == {*cluster.variables, *BUILT_IN}
