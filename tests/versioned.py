"""A feed that keeps versions, written by a process, and what its runs leave behind without running them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import dagster as dg

from falcon_assets.features.versions.operations import FeedInstance, find_feed_instance
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.storage.output_target import output_target

ENTITIES = """---
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
late_arrival: {cut_off: hours(12)}
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}]
---
kind: feed
name: totals
schedule: true
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/totals/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
versions: {keep: 2, for: hours(6)}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}
---
kind: process
name: add-up
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}]
frequency: hours(1)
inputs: [{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: totals, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
"""
TREE = {"all.yaml": ENTITIES, "all.sql": "SELECT * FROM raw"}
HOUR = parse_instant("2013-01-01T03:00Z")


def place(installation: Installation, instance: datetime = HOUR) -> FeedInstance:
    """Where an instance of ``totals`` lies."""
    return find_feed_instance(installation.entities, installation.settings, "totals", instance, None)


def publish(
    installation: Installation,
    text: str,
    instance: datetime = HOUR,
    *,
    killed: bool = False,
    write: Callable[[Path], None] | None = None,
) -> str:
    """As a run of ``add-up`` does, which may be killed before it records what it has published; the version."""
    found = place(installation, instance)
    target = output_target(found.feed, instance, found.path)
    with found.storage.publish("add-up", {"out": target}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir(parents=True)
        if write is None:
            (folder / "part-0").write_text(text)
        else:
            write(folder)
        done = publication.commit("out")
    if not killed:
        store, now = found.storage.store, installation.settings.now()
        there = FeedInstanceAvailable(
            *("primary", "totals", instance, done.version, now, done.bytes, 1, done.files),
            process="add-up",
            nominal=instance,
            path=store.shown(found.path),
            kept_versions=kept_versions(store, found.feed, instance),
        )
        event = materialization(dg.AssetKey(["primary", "totals"]), format_instant(instance), there)
        installation.ledger.instance.report_runless_asset_event(event)
        installation.ledger.catch_up()
    return done.version


def present(installation: Installation, instance: datetime = HOUR) -> str:
    """What the instance holds."""
    found = place(installation, instance)
    return Path(found.storage.store.path(found.path), "part-0").read_text()


def kept(installation: Installation, instance: datetime = HOUR) -> set[str]:
    """The versions of an instance that lie there."""
    return {one.version for one in place(installation).storage.kept_versions("totals", instance)}


def without_versions(installation: Installation) -> None:
    """The feed declares none any more."""
    (installation.settings.entity_defs / "all.yaml").write_text(
        ENTITIES.replace("versions: {keep: 2, for: hours(6)}\n", "")
    )
    installation.forget_entities()
