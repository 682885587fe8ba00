"""The metrics (source of the rules for names: Prometheus's "Metric and label naming")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MetricType(str, Enum):
    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True)
class Metric:
    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()


_GAUGE, _COUNTER = MetricType.GAUGE, MetricType.COUNTER
_ENTITY = ("kind", "entity", "cluster")

UP = Metric("falcon_up", _GAUGE, "Whether the ledger could be read.")
BUILD = Metric("falcon_build_info", _GAUGE, "What is installed; always 1.", ("version", "dagster", "python"))
BEHIND = Metric("falcon_ledger_behind_events", _GAUGE, "Events of Dagster that the ledger has not read yet.")
INSTANCES = Metric("falcon_instances", _GAUGE, "Instances that are due, by state.", (*_ENTITY, "state"))
WAITING = Metric("falcon_waiting_instances", _GAUGE, "Instances that wait, by reason.", (*_ENTITY, "reason"))
LAG = Metric(
    "falcon_feed_lag_seconds",
    _GAUGE,
    "Time since the nominal time of the first instance after the newest one that is there; 0: it is not due.",
    ("feed", "cluster"),
)
NEWEST = Metric(
    "falcon_feed_newest_instance_timestamp_seconds",
    _GAUGE,
    "Nominal time of the newest instance that is there.",
    ("feed", "cluster"),
)
WATERMARK = Metric(
    "falcon_feed_watermark_timestamp_seconds",
    _GAUGE,
    "Nominal time before which all instances are there, of feeds that declare their completeness.",
    ("feed", "cluster"),
)
COMPLETENESS = Metric(
    "falcon_feed_completeness_ratio",
    _GAUGE,
    "Share of the records sent that have come, of the first instance that is not complete; 1: all are.",
    ("feed", "cluster"),
)
NOT_VALID = Metric(
    "falcon_feed_instances_not_valid",
    _GAUGE,
    "Instances that are there, and are invalid, or whose checks have not run yet, by state.",
    ("feed", "cluster", "state"),
)
OPEN_BREACHES = Metric("falcon_sla_open_breaches", _GAUGE, "Breaches of SLAs that are open.", (*_ENTITY, "severity"))
BREACHES = Metric("falcon_sla_breaches_total", _COUNTER, "Breaches of SLAs ever recorded.", (*_ENTITY, "severity"))
WAITING_EVENTS = Metric(
    "falcon_waiting_events", _GAUGE, "Events that wait to be sent to a receiver or published.", ("receiver",)
)
REPLICATED = Metric(
    "falcon_replicated_bytes_total", _COUNTER, "Bytes that replications copied.", ("replication", "cluster")
)
EVICTED = Metric("falcon_evicted_bytes_total", _COUNTER, "Bytes that retention took.", ("feed", "cluster", "action"))
_EXECUTOR = ("cluster", "executor")
EXECUTOR_UP = Metric("falcon_executor_up", _GAUGE, "Whether an executor answered when it was asked last.", _EXECUTOR)
EXECUTOR_JOBS = Metric("falcon_executor_jobs", _GAUGE, "Instances that run on an executor, or are about to.", _EXECUTOR)
EXECUTOR_CORES = Metric("falcon_executor_cores", _GAUGE, "Cores that runs have on an executor.", _EXECUTOR)
EXECUTOR_FREE = Metric(
    "falcon_executor_free_cores", _GAUGE, "Cores of an executor that are free, where its Spark says so.", _EXECUTOR
)
EXECUTOR_WAITING = Metric(
    "falcon_executor_waiting_applications",
    _GAUGE,
    "Applications that wait for cores of an executor, where its Spark says so.",
    _EXECUTOR,
)
TICK_DURATION = Metric(
    "falcon_tick_duration_seconds",
    _GAUGE,
    "How long the last tick of a sensor or schedule took.",
    ("location", "type", "name"),
)
TICK_TIME = Metric(
    "falcon_last_tick_timestamp_seconds",
    _GAUGE,
    "When the last tick began that is over, in real time.",
    ("location", "type", "name"),
)
TICK_SUCCEEDED = Metric(
    "falcon_last_tick_succeeded", _GAUGE, "Whether the last tick did not fail.", ("location", "type", "name")
)

METRICS = (
    *(UP, BUILD, BEHIND, INSTANCES, WAITING, LAG, NEWEST, WATERMARK, COMPLETENESS, NOT_VALID),
    *(OPEN_BREACHES, BREACHES, WAITING_EVENTS, REPLICATED, EVICTED),
    *(EXECUTOR_UP, EXECUTOR_JOBS, EXECUTOR_CORES, EXECUTOR_FREE, EXECUTOR_WAITING),
    *(TICK_DURATION, TICK_TIME, TICK_SUCCEEDED),
)
"""The order is that of the output."""
