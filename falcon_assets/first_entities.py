"""A cluster, two feeds and a process to begin with."""

from __future__ import annotations

import re
from datetime import datetime

from falcon_assets.model.instant import format_instant

_CLUSTER = """\
# Completion and checks while you type: see `falcon schema --help`.
kind: cluster
name: NAME
interfaces:
  # A bare path is below FALCON_HOME; or a URL: file://, s3://, abfs://, gs://, hdfs://
  write: {endpoint: data/NAME}
  # Spark in the process of the run; or spark://, yarn, k8s://, sc://
  execute: {endpoint: "local[2]"}
"""
_FEEDS = """\
kind: feed
name: orders                           # lands from outside
frequency: hours(1)
availability_flag: _SUCCESS            # an instance is complete when its folder has this file
format: json
schema: "item string, amount double"
locations: {data: "/orders/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - {name: NAME, validity: {start: START, end: 9999-12-31T23:59Z}}
---
kind: feed
name: totals                           # the process writes it
frequency: hours(1)
availability_flag: _SUCCESS
format: parquet
locations: {data: "/totals/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - {name: NAME, validity: {start: START, end: 9999-12-31T23:59Z}}
"""
_PROCESS = """\
kind: process
name: add-up
pipelines: [NAME]
clusters:
  - {name: NAME, validity: {start: START, end: 9999-12-31T23:59Z}}
frequency: hours(1)
inputs:
  - {name: orders, feed: orders, start: "now(0,0)", end: "now(0,0)"}
outputs:
  - {name: totals, feed: totals, instance: "now(0,0)"}
workflow: {engine: spark-sql, path: add_up.sql}
schedule: false                        # true: each instance runs by itself when its orders have landed
"""
_WORKFLOW = """\
SELECT item, sum(amount) AS amount
FROM orders                             -- a view named like the input
GROUP BY item
"""


def first_entities(folder: str, start: datetime) -> dict[str, str]:
    """Files by name: definitions without problems, and the workflow that they name.

    Args:
        folder: The cluster and the pipeline are named after it, so that a code location may have several such folders.
        start: Of all validities.
    """
    words = {"NAME": _name(folder), "START": format_instant(start)}
    texts = {"cluster.yaml": _CLUSTER, "feeds.yaml": _FEEDS, "processes.yaml": _PROCESS, "add_up.sql": _WORKFLOW}
    return {file: re.sub("|".join(words), lambda found: words[found[0]], text) for file, text in texts.items()}


def _name(folder: str) -> str:
    """The folder's name, as far as an entity may be called like this."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-")
    return (name if name[:1].isalpha() else f"c-{name}".rstrip("-"))[:39]
