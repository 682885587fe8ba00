"""Where versions can be kept, and where nothing would be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from tests.catalog.definition_files import FILES, problems, write

KEEP = "versions: {keep: 3, for: days(7)}\n"


def with_versions(feed: str, text: str = KEEP) -> dict[str, str]:
    changed = FILES["feeds.yaml"].replace(f"name: {feed}\n", f"name: {feed}\n{text}")
    assert changed != FILES["feeds.yaml"]
    return {**FILES, "feeds.yaml": changed}


@pytest.mark.parametrize("feed", ["raw", "delays"])
def test_what_is_published_here_is_kept_on_file_systems(tmp_path: Path, feed: str) -> None:
    store = load_entities(write(tmp_path, with_versions(feed)), strict=True)
    declared = store.feed(feed).versions
    assert declared is not None
    assert (declared.keep, str(declared.for_)) == (3, "days(7)")


def test_what_others_write_is_not_kept(tmp_path: Path) -> None:
    files = with_versions("delays")
    del files["processes.yaml"]
    (warning,) = load_entities(write(tmp_path, files)).warnings
    assert str(warning).replace(f"{tmp_path}/", "") == (
        "feeds.yaml:19: warning: versions: no process writes the feed and it is not replicated, and what others "
        "replace is not kept"
    )


def test_other_stores_keep_none(tmp_path: Path) -> None:
    files = with_versions("raw", KEEP + "availability_flag: _SUCCESS\n")
    files["clusters.yaml"] = files["clusters.yaml"].replace("data/backup", "s3://lake/backup")
    assert problems(tmp_path, files) == [
        "feeds.yaml:3: versions: the feed is a copy on an object store on cluster 'backup', where no versions are kept"
    ]


@pytest.mark.parametrize(
    "text", ["{keep: 0}", "{for: days(7)}", "{keep: two}", "{keep: 1, for: now}", "{keep: 1, of: 2}"]
)
def test_what_cannot_be_meant(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, with_versions("raw", f"versions: {text}\n"))
    assert problem.startswith("feeds.yaml:3: versions")


def test_a_feed_that_only_keeps_versions_may_say_how_often_they_are_passed_over(tmp_path: Path) -> None:
    lifecycle = "lifecycle: {retention: {frequency: hours(1)}}\n"
    load_entities(write(tmp_path, with_versions("delays", KEEP + lifecycle)), strict=True)
    assert problems(tmp_path / "other", with_versions("delays", lifecycle)) == [
        "feeds.yaml:19: lifecycle.retention: no cluster of the feed declares retention, so there is nothing to look for"
    ]
