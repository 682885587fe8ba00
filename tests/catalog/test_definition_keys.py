from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import changed, problems

WORKFLOW = "{engine: spark-sql, path: hourly.sql}"
CASES = {
    "misspelt_key": (
        "feeds.yaml",
        "frequency: hours(1)\npartitions",
        "freqency: hours(1)\npartitions",
        ["feeds.yaml:3: freqency: unknown key 'freqency' (did you mean 'frequency'?)"],
    ),
    "misspelt_key_below": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limits: days(90)}",
        ["feeds.yaml:12: clusters[0].retention.limits: unknown key 'limits' (did you mean 'limit'?)"],
    ),
    "key_with_an_alias_in_the_model": (
        "feeds.yaml",
        "partitions: [carrier]",
        "schemas: x int",
        ["feeds.yaml:4: schemas: unknown key 'schemas' (did you mean 'schema'?)"],
    ),
    "python_name_of_an_aliased_key": (
        "feeds.yaml",
        "partitions: [carrier]",
        "schema_: x int",
        ["feeds.yaml:4: schema_: unknown key 'schema_' (did you mean 'schema'?)"],
    ),
    "unknown_key": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limit: days(90), zzz: 1}",
        [
            "feeds.yaml:12: clusters[0].retention.zzz: unknown key 'zzz'; legal here: limit, action, archive_to, "
            "archive_cluster, archive_limit, keep_last, minimum_age, future",
        ],
    ),
    "archive_cluster_without_archive": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limit: days(90), archive_cluster: backup}",
        ["feeds.yaml:12: clusters[0].retention: archive_cluster is allowed with action: archive only"],
    ),
    "archive_limit_without_archive": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limit: days(90), archive_limit: days(99)}",
        ["feeds.yaml:12: clusters[0].retention: archive_limit is allowed with action: archive only"],
    ),
    "archive_limit_below_limit": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limit: days(90), action: archive, archive_to: '/a/${YEAR}-${MONTH}-${DAY}-${HOUR}', archive_limit: days(90)}",
        ["feeds.yaml:12: clusters[0].retention: archive_limit, days(90), must be longer than limit, days(90)"],
    ),
    "keep_last_of_none": (
        "feeds.yaml",
        "{limit: days(90)}",
        "{limit: days(90), keep_last: 0}",
        ["feeds.yaml:12: clusters[0].retention.keep_last: 0 is not legal: 1 or more"],
    ),
    "unknown_key_of_a_workflow": (
        "processes.yaml",
        WORKFLOW,
        "{engine: spark-submit, path: hourly.sql, klass: x.Main}",
        ["processes.yaml:11: workflow.klass: unknown key 'klass' (did you mean 'class'?)"],
    ),
    "missing_key": (
        "processes.yaml",
        ", end: 2014-01-01T00:00Z}",
        "}",
        ["processes.yaml:6: clusters[0].validity.end: required key is missing"],
    ),
    "missing_key_points_at_its_parent": (
        "clusters.yaml",
        'colo: west\ninterfaces: {write: {endpoint: data/backup}, execute: {endpoint: "local[2]"}}',
        "interfaces:\n  write:\n    endpoint: data/backup",
        ["clusters.yaml:8: interfaces.execute: required key is missing"],
    ),
    "missing_key_of_a_list_item": (
        "feeds.yaml",
        "  - name: backup\n    type: target\n",
        "  - type: target\n",
        ["feeds.yaml:13: clusters[1].name: required key is missing"],
    ),
    "literal": (
        "feeds.yaml",
        "type: source",
        "type: sorce",
        ["feeds.yaml:10: clusters[0].type: 'sorce' is not legal (did you mean 'source'?); legal: source, target"],
    ),
    "engine": (
        "processes.yaml",
        WORKFLOW,
        "{engine: hive, path: hourly.sql}",
        ["processes.yaml:11: workflow.engine: unknown engine 'hive'; legal: pyspark, python, spark-sql, spark-submit"],
    ),
    "misspelt_engine": (
        "processes.yaml",
        WORKFLOW,
        "{engine: spark_sql, path: hourly.sql}",
        [
            "processes.yaml:11: workflow.engine: unknown engine 'spark_sql' (did you mean 'spark-sql'?); "
            "legal: pyspark, python, spark-sql, spark-submit"
        ],
    ),
    "no_engine": (
        "processes.yaml",
        WORKFLOW,
        "{path: hourly.sql}",
        ["processes.yaml:11: workflow.engine: required key is missing"],
    ),
    "rule_of_a_workflow": (
        "processes.yaml",
        WORKFLOW,
        "{engine: pyspark}",
        ["processes.yaml:11: workflow: exactly one of path and function is required"],
    ),
    "name": (
        "processes.yaml",
        "name: hourly",
        "name: hourly flights",
        [
            "processes.yaml:2: name: 'hourly flights' is not legal: write a letter, then letters, digits, '-' or '_', "
            "39 characters at most"
        ],
    ),
    "long_name_is_cut": (
        "processes.yaml",
        "name: hourly",
        f"name: {'x' * 200}",
        [
            f"processes.yaml:2: name: '{'x' * 57}...' is not legal: write a letter, then letters, digits, '-' or '_', "
            "39 characters at most"
        ],
    ),
    "frequency": (
        "processes.yaml",
        "frequency: hours(1)",
        "frequency: hours(0)",
        [
            "processes.yaml:3: frequency: 'hours(0)' is not a frequency: write minutes(n), hours(n), days(n) or "
            "months(n) with a whole n > 0"
        ],
    ),
    "instant": (
        "processes.yaml",
        "2014-01-01T00:00Z",
        "2014-01-01",
        [
            "processes.yaml:6: clusters[0].validity.end: '2014-01-01' is not an instant: write YYYY-MM-DDTHH:MMZ "
            "(UTC), for example 2013-01-01T00:00Z"
        ],
    ),
    "validity_ends_before_it_starts": (
        "processes.yaml",
        "end: 2014-01-01T00:00Z",
        "end: 2012-01-01T00:00Z",
        ["processes.yaml:6: clusters[0].validity: start 2013-01-01T00:00Z must be before end 2012-01-01T00:00Z"],
    ),
    "zone": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\ntimezone: Europe/Berlim\n",
        ["processes.yaml:3: timezone: 'Europe/Berlim' is not an IANA time zone (did you mean 'Europe/Berlin'?)"],
    ),
    "endpoint": (
        "clusters.yaml",
        'write: {endpoint: data/primary}, execute: {endpoint: "local[2]"}',
        "write: {endpoint: data/primary}, execute: {endpoint: mesos}",
        [
            "clusters.yaml:4: interfaces.execute.endpoint: 'mesos' is not an execute endpoint: write local[N], "
            "spark://host:port, yarn, k8s://... or sc://host:port"
        ],
    ),
    "permission": (
        "clusters.yaml",
        "colo: east",
        "acl: {owner: etl, permission: 0755}",
        ['clusters.yaml:3: acl.permission: 0755 is not a text: write "0755" in quotes'],
    ),
    "number": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nparallel: 0\n",
        ["processes.yaml:3: parallel: 0 is not legal: 1 or more"],
    ),
    "large_number": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nretry: {attempts: 1000}\n",
        ["processes.yaml:3: retry.attempts: 1000 is not legal: 100 at most"],
    ),
    "not_a_number": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nparallel: two\n",
        ["processes.yaml:3: parallel: must be a whole number, not 'two'"],
    ),
    "true_is_not_a_number": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nparallel: true\n",
        ["processes.yaml:3: parallel: must be a whole number, not true"],
    ),
    "not_a_truth_value": (
        "processes.yaml",
        "name: hourly\n",
        "name: hourly\nschedule: yes\n",
        ["processes.yaml:3: schedule: must be true or false, not 'yes'"],
    ),
    "empty_list": (
        "processes.yaml",
        "inputs: [{input: flights}]",
        "inputs: []",
        ["processes.yaml:12: late_process.inputs: must not be empty"],
    ),
    "list_of_wrong_items_only": (
        "processes.yaml",
        '\n  - {name: out, feed: delays, instance: "now(0,0)"}',
        " [out]",
        ["processes.yaml:9: outputs[0]: must be a mapping (key: value), not 'out'"],
    ),
    "text_for_a_list": (
        "feeds.yaml",
        "[carrier]",
        "carrier",
        ["feeds.yaml:4: partitions: must be a list, not 'carrier'"],
    ),
    "list_for_a_mapping": (
        "clusters.yaml",
        "colo: east",
        "tags: [a]",
        ["clusters.yaml:3: tags: must be a mapping (key: value), not a list"],
    ),
    "mapping_for_a_text": (
        "clusters.yaml",
        "colo: east",
        "colo: {east: 1}",
        ["clusters.yaml:3: colo: must be a text, not a mapping"],
    ),
    "mapping_for_a_path": (
        "feeds.yaml",
        "data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "data: {path: /raw}",
        ["feeds.yaml:7: locations.data: must be a text, not a mapping"],
    ),
    "empty_value": (
        "clusters.yaml",
        "colo: east",
        "colo:",
        ["clusters.yaml:3: colo: must be a text, not empty"],
    ),
    "empty_text": (
        "clusters.yaml",
        "colo: east",
        "colo: ''",
        ["clusters.yaml:3: colo: must not be empty"],
    ),
    "empty_key": (
        "clusters.yaml",
        "colo: east",
        "tags: {'': x}",
        ["clusters.yaml:3: tags.: must not be empty"],
    ),
    "storage_option": (
        "clusters.yaml",
        "colo: east",
        "storage_options:\n  key: [KEY]\n  secret: 1.5\n  client_kwargs: {endpoint_url: 1.5}",
        [
            f"clusters.yaml:{line}: storage_options.{key}: must be {{env: NAME}}, {{file: PATH}}, {{encrypted: ...}}, "
            "a text, a whole number, or true or false"
            for line, key in ((4, "key"), (5, "secret"), (6, "client_kwargs"))
        ],
    ),
    "storage_option_that_is_a_mapping": (
        "clusters.yaml",
        "colo: east",
        "storage_options:\n  key: {environment: KEY}\n  client_kwargs: {endpoint_url: {env: URL}}",
        [
            "clusters.yaml:4: storage_options.key: must be {env: NAME}, {file: PATH}, {encrypted: ...}, a text, a "
            "whole number, or true or false"
        ],
    ),
    "notification": (
        "feeds.yaml",
        "partitions: [carrier]",
        "notification:\n  on: [FAILD]\n  to: []",
        [
            "feeds.yaml:5: notification.on[0]: 'FAILD' is not legal (did you mean 'FAILED'?); legal: FAILED, "
            "TIMED_OUT, SLA, LATE, EVICTED, SUCCEEDED, KILLED, RESTORED, STARTED, SKIPPED, SUSPENDED, RESUMED, "
            "INTERRUPTED, TOO_LATE, LANDED, REPLICATED, WITHDRAWN, SHARE_REACHED, VALID, INVALID, BACKFILLED, HELD, "
            "EXECUTOR_OFFLINE, EXECUTOR_ONLINE",
            "feeds.yaml:6: notification.to: must not be empty",
        ],
    ),
    "url_of_a_receiver": (
        "processes.yaml",
        "late_process: {policy: final, inputs: [{input: flights}]}",
        "notification:\n  to: [{url: 'json://x'}, {url: {env: HOOK}}]",
        [
            "processes.yaml:13: notification.to[0]: must be {url: ...} with {env: NAME}, {file: PATH} or "
            "{encrypted: ...}: the URL says who may write there, so it is a secret"
        ],
    ),
    "unclosed_hole_in_a_path": (
        "feeds.yaml",
        "data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "data: /raw/${YEAR/${MONTH}",
        ["feeds.yaml:7: locations.data: '/raw/${YEAR/${MONTH}': a '${' is not closed"],
    ),
    "table_uri": (
        "feeds.yaml",
        "locations:\n  data: /delays/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "table:\n  uri: db.delays",
        [
            "feeds.yaml:21: table.uri: 'db.delays' is not legal: write catalog:database:table#key=value;key=value",
        ],
    ),
    "several_in_one_pass": (
        "processes.yaml",
        f"workflow: {WORKFLOW}",
        "order: FIF\nparallel: many\nworkflow: {engine: spark-sql, pth: hourly.sql}",
        [
            "processes.yaml:11: order: 'FIF' is not legal (did you mean 'FIFO'?); legal: FIFO, LIFO, LAST_ONLY",
            "processes.yaml:12: parallel: must be a whole number, not 'many'",
            "processes.yaml:13: workflow.pth: unknown key 'pth' (did you mean 'path'?)",
        ],
    ),
}


@pytest.mark.parametrize(("file", "old", "new", "expected"), CASES.values(), ids=CASES)
def test_problem(tmp_path: Path, file: str, old: str, new: str, expected: list[str]) -> None:
    assert problems(tmp_path, changed(file, old, new)) == expected
