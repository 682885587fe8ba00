"""Locations that are whole URLs, beside clusters one of which lies in the same bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import CLUSTERS, FEEDS, FILES, load, problems

LAKE = CLUSTERS.replace("data/backup", "s3a://lake/data/")
FLAGGED = FEEDS.replace("partitions: [carrier]", "availability_flag: _DONE")
HOUR = "${YEAR}/${MONTH}/${DAY}/${HOUR}"
TARGET = "    type: target\n"
OUTPUT = (
    "processes.yaml:10: outputs[0].feed: feed 'delays' lies on no file:// store on cluster 'primary', and is published "
    "by setting the flag: declare availability_flag"
)
OPTION_RULE = "must be {env: NAME}, {file: PATH}, {encrypted: ...}, a text, a whole number, or true or false"
UP = f"feeds.yaml:8: locations.data: '/raw/${{up}}/{HOUR}': a variable puts '..' into the path on cluster"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            f"/delays/{HOUR}",
            f"s3://lake/data/raw/{HOUR}",
            [
                f"feeds.yaml:21: locations.data: 's3://lake/data/raw/{HOUR}' is the same path as locations.data of "
                "feed 'raw' at feeds.yaml:7",
                OUTPUT,
            ],
            id="on the path of another feed",
        ),
        pytest.param(
            f"/delays/{HOUR}",
            f"S3A://lake//data/raw/{HOUR}/in",
            [
                f"feeds.yaml:21: locations.data: 's3://lake/data/raw/{HOUR}/in' is inside of the instances of "
                "locations.data of feed 'raw' at feeds.yaml:7",
                OUTPUT,
            ],
            id="inside of another feed's instance",
        ),
        pytest.param(
            "data: /raw/",
            "data: s3://lake/other/",
            [
                f"feeds.yaml:7: locations.data: 's3://lake/other/{HOUR}' is the place of target cluster 'backup', "
                "where it lies on source cluster 'primary' too"
            ],
            id="a copy onto itself",
        ),
        pytest.param(
            f"/delays/{HOUR}",
            f"sftp://lake/{HOUR}",
            [
                "processes.yaml:10: outputs[0].feed: feed 'delays' lies on no file:// store on cluster 'primary', and "
                "outputs of processes are published on such, on HDFS and on object stores only"
            ],
            id="an output on neither files nor objects",
        ),
        pytest.param(
            TARGET,
            f"{TARGET}    locations: {{data: 's3://lake/data/.falcon/staging/x/{HOUR}'}}\n",
            [
                "clusters.yaml:6: locations.staging: '.falcon/staging' and 's3://lake/data/.falcon/staging/x', where "
                "feed 'raw' lies, must not be inside of each other"
            ],
            id="in the staging of a cluster",
        ),
        pytest.param(
            "{limit: days(90)}",
            f"{{limit: days(90), action: archive, archive_to: 's3://lake/data/raw/{HOUR}/old'}}",
            [
                f"feeds.yaml:12: clusters[0].retention.archive_to: 's3://lake/data/raw/{HOUR}/old' is inside of the "
                "instances of locations.data of feed 'raw' at feeds.yaml:7"
            ],
            id="an archive in the replica",
        ),
        pytest.param(
            "data: /raw/",
            "storage_options: {key: {env: KEY}}\n  data: /raw/",
            [
                "feeds.yaml:7: locations.storage_options: no location is a whole URL, and all others take the options "
                "of the cluster"
            ],
            id="idle options",
        ),
        pytest.param(
            TARGET,
            f"{TARGET}    locations: {{data: 'gs://x/{HOUR}', storage_options: {{o: {{a: hunter2}}}}}}\n",
            [f"feeds.yaml:15: clusters[1].locations.storage_options.o: {OPTION_RULE}"],
            id="a mapping where none is taken",
        ),
        pytest.param(
            "data: /raw/",
            "storage_options: {key: [hunter2]}\n  data: /raw/",
            [f"feeds.yaml:7: locations.storage_options.key: {OPTION_RULE}"],
            id="options of a wrong type",
        ),
        pytest.param(
            "locations:\n  data: /raw/",
            "properties: {up: '../..'}\nlocations:\n  data: /raw/${up}/",
            [f"{UP} 'primary'", f"{UP} 'backup'"],
            id="a property that leads out",
        ),
        pytest.param(
            "data: /raw/",
            "data: s3://key:hunter2@lake/",
            [
                "feeds.yaml:7: locations.data: a location must not hold credentials: name them in storage_options as "
                "{env: NAME}"
            ],
            id="credentials in it",
        ),
        pytest.param(
            "availability_flag: _DONE",
            "options: {}",
            [
                "feeds.yaml:13: clusters[1].name: target 'backup' is not a file:// store, and is published to by "
                "setting the flag: declare availability_flag"
            ],
            id="a target without a flag",
        ),
    ],
)
def test_problem(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    feeds = FLAGGED.replace(old, new, 1)
    assert feeds != FLAGGED
    found = problems(tmp_path, {**FILES, "clusters.yaml": LAKE, "feeds.yaml": feeds})
    assert [one for one in found if "unknown feed" not in one] == expected


def test_options_are_not_shown(tmp_path: Path) -> None:
    feeds = FLAGGED.replace("data: /raw/", "storage_options: {key: [hunter2]}\n  data: gs://lake/")
    with pytest.raises(Exception, match="storage_options") as caught:
        load(tmp_path, {**FILES, "feeds.yaml": feeds})
    assert "hunter2" not in str(caught.value)


def test_right_ones(tmp_path: Path) -> None:
    """A feed that two clusters read at one place, an archive in another bucket, statistics on a disk."""
    feeds = FLAGGED.replace("    type: source\n", f"    locations: {{stats: 'file:///mnt/s/{HOUR}'}}\n")
    feeds = feeds.replace(TARGET, "").replace("data: /raw/", "data: s3://lake/in/")
    archive = f"{{limit: days(90), action: archive, archive_to: 's3://lake/old/{HOUR}'}}"
    feed = load(tmp_path, {**FILES, "feeds.yaml": feeds.replace("{limit: days(90)}", archive)}).feed("raw")
    assert {str(feed.locations_on(name).data) for name in ("primary", "backup")} == {f"s3://lake/in/{HOUR}"}
