"""Writes entity definitions of any number, for benchmarks."""

from __future__ import annotations

from pathlib import Path

FEEDS, PROCESSES = 1000, 1000
"""What the issue asks for."""

_CLUSTER = """\
kind: cluster
name: cluster-{number}
colo: east
interfaces:
  write: {{endpoint: "data/cluster-{number}"}}
  execute: {{endpoint: "local[2]"}}
"""
_FEED = """\
kind: feed
name: feed-{number}
description: hourly events of source {number}
tags: {{owner: etl, classification: public}}
groups: [landing]
frequency: hours(1)
availability_flag: _SUCCESS
late_arrival: {{cut_off: hours(6)}}
sla: {{low: hours(2), high: hours(4)}}
format: json
locations:
  data: "/events/{number}/${{YEAR}}/${{MONTH}}/${{DAY}}/${{HOUR}}"
clusters:
{clusters}
acl: {{owner: etl, group: data, permission: "0755"}}
schedule: true
"""
_FEED_CLUSTER = """\
  - name: cluster-{number}
    validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
    retention: {{limit: days(90), action: delete}}"""
_PROCESS = """\
kind: process
name: process-{number}
tags: {{owner: analytics}}
pipelines: [pipeline-{pipeline}]
clusters:
  - {{name: cluster-{cluster}, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}
parallel: 2
order: FIFO
timeout: hours(3)
frequency: hours(1)
inputs:
  - {{name: read, feed: feed-{input}, start: "now(0,0)", end: "now(0,0)"}}
outputs:
  - {{name: written, feed: feed-{output}, instance: "now(0,0)"}}
workflow: {{engine: spark-sql, path: workflows/copy.sql}}
retry: {{policy: periodic, delay: minutes(10), attempts: 3}}
properties: {{threshold: "15"}}
schedule: true
"""


def write_entities(root: Path, feeds: int, processes: int) -> None:
    """Hourly feeds and hourly processes below ``root``, one per file, each process with one input and one output.

    The first half of the feeds lands from outside; the other half is produced, in chains of ten that begin with a
    landing feed. As a feed has one producer per cluster, there is a further cluster for each ``feeds // 2`` processes.
    """
    produced = feeds // 2
    landing = feeds - produced
    clusters = max(1, -(-processes // max(produced, 1)))
    for folder in ("clusters", "feeds", "processes", "workflows"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "workflows" / "copy.sql").write_text("SELECT * FROM read\n")
    for number in range(clusters):
        (root / "clusters" / f"cluster-{number}.yaml").write_text(_CLUSTER.format(number=number))
    on_clusters = "\n".join(_FEED_CLUSTER.format(number=number) for number in range(clusters))
    for number in range(feeds):
        text = _FEED.format(number=number, clusters=on_clusters)
        (root / "feeds" / f"feed-{number}.yaml").write_text(text)
    for number in range(processes):
        cluster, position = divmod(number, produced)
        output = landing + position
        read = position if position % 10 == 0 else output - 1
        text = _PROCESS.format(number=number, pipeline=number % 20, input=read, output=output, cluster=cluster)
        (root / "processes" / f"process-{number}.yaml").write_text(text)
