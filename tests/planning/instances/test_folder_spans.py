from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.instance_paths import FolderSpans, InstancePaths
from tests.builders import make_cluster, make_feed

CLUSTER = make_cluster()
TEMPLATES = [
    "/${YEAR}/${MONTH}/${DAY}/${HOUR}",
    "/${YEAR}/${DAY}/${MONTH}-${HOUR}",
    "/${MONTH}/${YEAR}/${DAY}/${HOUR}",
    "/a/${YEAR}${MONTH}/${DAY}${HOUR}/b",
]


def levels(template: PathTemplate, path: str) -> list[tuple[PathTemplate, str]]:
    """Each folder on the way to the path, with the template of its level."""
    steps, names = (text.strip("/").split("/") for text in (template.text, path))
    return [
        (PathTemplate("/" + "/".join(steps[:depth])), "/" + "/".join(names[:depth]))
        for depth in range(1, len(steps) + 1)
    ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Apia", "Pacific/Kiritimati"])
@given(data=st.data())
def test_every_folder_of_an_instance_in_a_span_may_hold_it(zone: str, data: st.DataObject) -> None:
    start = datetime(2011, 12, 20, data.draw(st.integers(0, 23)), tzinfo=UTC)
    feed = make_feed(
        frequency=data.draw(st.sampled_from(["hours(7)", "days(1)", "days(3)", "months(1)"])),
        timezone=zone,
        path_timezone=data.draw(st.sampled_from([None, "UTC", "Asia/Tokyo", "America/New_York"])),
        locations={"data": data.draw(st.sampled_from(TEMPLATES))},
        clusters=[{"name": "primary", "validity": {"start": start, "end": start + timedelta(days=90)}}],
    )
    paths = InstancePaths(feed, CLUSTER)
    instance = data.draw(st.sampled_from(paths.timeline.between(start, start + timedelta(days=90))))
    before, after = (timedelta(hours=data.draw(st.integers(0, 200))) for _ in range(2))
    elsewhere = start + timedelta(days=data.draw(st.integers(-900, 900)))
    spans = FolderSpans.of(paths, [(elsewhere, elsewhere), (instance - before, instance + after)])
    for level, folder in levels(paths.template, paths.data(instance)):
        assert spans.may_hold(level, folder)
        assert folder in (spans.folders(level) or [folder])


def test_folders_of_other_times_hold_nothing() -> None:
    spans = FolderSpans.of(InstancePaths(make_feed(), CLUSTER), [(datetime(2013, 1, 31, 22, tzinfo=UTC),) * 2])
    day = PathTemplate("/${YEAR}/${MONTH}/${DAY}")
    asked = ["/2013/01/30", "/2013/01/31", "/2013/02/01", "/2013/01/x"]
    assert [path for path in asked if spans.may_hold(day, path)] == ["/2013/01/31"]
    assert spans.folders(day) == {"/2013/01/31"}
