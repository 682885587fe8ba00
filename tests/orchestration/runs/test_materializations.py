"""What Dagster's history says of a published instance."""

from __future__ import annotations

import platform
from importlib.metadata import version

from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.record import said_by
from falcon_assets.instances.runs.instance_result import InstanceResult, PublishedOutput
from falcon_assets.instances.runs.materializations import materializations
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.data_usage import Usage
from falcon_assets.planning.process_instance import OutputPlan
from falcon_assets.settings import os_user
from falcon_assets.storage.instances.data_version import DataVersion
from tests.builders import make_feed

T = parse_instant("2013-01-01T00:00Z")


def test_each_output_says_the_definition_that_it_was_made_with() -> None:
    outputs = tuple(
        PublishedOutput(OutputPlan(name, make_feed(name=name), T, f"/{name}"), f"/{name}", DataVersion("v", 1, 1), 1)
        for name in ("one", "two")
    )
    result = InstanceResult(T, {}, outputs, "app", 1.0, Usage())
    events = materializations(result, "p", "primary", "2013", T, definition=3)
    said = [FeedInstanceAvailable.read(said_by(event)) for event in events]
    assert [one.definition for one in said] == [3, 3]
    assert {one.made_by for one in said} == {os_user()}
    environment = said[0].environment or {}
    assert (environment["python"], environment["pyspark"]) == (platform.python_version(), version("pyspark"))
    assert environment.keys() == {"python", "pyspark", "falcon-assets", "packages"}
