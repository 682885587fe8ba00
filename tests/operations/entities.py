"""Definitions that the tests of operations and of the commands over them share."""

from __future__ import annotations

_CLUSTER = """
kind: cluster
name: {name}
interfaces: {{write: {{endpoint: data/{name}}}, execute: {{endpoint: "local[1]"}}}}
---
"""
RETAINED = (
    _CLUSTER.format(name="primary")
    + _CLUSTER.format(name="backup")
    + _CLUSTER.format(name="empty")
    + """
kind: feed
name: raw
frequency: hours(1)
schedule: true
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: hours(3)}
  - name: backup
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention:
      limit: hours(2)
      action: archive
      archive_to: "/old/${YEAR}-${MONTH}-${DAY}-${HOUR}"
      archive_cluster: empty
---
kind: feed
name: kept
frequency: hours(1)
locations: {data: "/kept/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: unborn
frequency: hours(1)
locations: {data: "/unborn/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: empty, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: linked
frequency: hours(1)
locations: {data: "/linked/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - name: backup
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: hours(3)}
---
kind: process
name: reader
schedule: true
clusters: [{name: primary, validity: {start: 2013-01-01T01:00Z, end: 2013-01-01T03:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: kept, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: a.sql}
"""
)

_OTHER_CLUSTER = """
kind: cluster
name: {name}
interfaces: {{write: {{endpoint: {endpoint}}}, execute: {{endpoint: "local[1]"}}}}
---
"""
COLLECTED = (
    _OTHER_CLUSTER.format(name="primary", endpoint="data/primary")
    + _OTHER_CLUSTER.format(name="short", endpoint="data/short")
    + _OTHER_CLUSTER.format(name="away", endpoint='"s3://lake/data"')
    + """
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - {name: primary, validity: {start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}
  - {name: short, validity: {start: 2012-06-01T00:00Z, end: 2014-01-01T00:00Z}}
---
kind: feed
name: made
frequency: hours(1)
locations: {data: "/made/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: remote
frequency: hours(1)
locations: {data: "/remote/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: away, validity: {start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: make
clusters: [{name: primary, validity: {start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: made, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
"""
)
