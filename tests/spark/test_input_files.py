"""Every file that is counted is read, on each kind of execute endpoint, or the instance fails with the names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from tests.spark.sandbox import Sandbox
from tests.spark_servers import connect_server

ODD = ["ü", "a b", "100%41", "g[ab]", "x{y,z}", "what?", "*", "a\\b", "a,b#c"]
FOLDERS = ["g[ab]/x*y {1,2}/é%41#c?d,e", "g[ab]/x*y {1,2}/é%41#c?d,f"]
DECOYS = ["ga/xzy 1/é%41#c?d,e", "gb/xzy 2/é%41#c?d,f"]
COPY = "SELECT n FROM flights"


def planted(sandbox: Sandbox, *names: str) -> list[tuple[int]]:
    """Files with a number in each; the rows that have to be read."""
    for number, name in enumerate(names):
        sandbox.file(name, f'{{"n":{number}}}')
    return [(number,) for number in range(len(names))]


def copied(sandbox: Sandbox, *paths: str, **feed: Any) -> list[tuple[Any, ...]]:
    sandbox.file("copy.sql", COPY)
    run_workflow(
        sandbox.task(
            sandbox.workflow(engine="spark-sql", path="copy.sql"),
            inputs=(sandbox.counted("flights", *paths, **{"schema": "n int", **feed}),),
        )
    )
    return sandbox.rows()


def refusal(sandbox: Sandbox, *paths: str, **feed: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        copied(sandbox, *paths, **feed)
    return str(caught.value)


@pytest.fixture
def anywhere(tmp_path: Path, any_cluster: Cluster) -> Sandbox:
    return Sandbox(tmp_path, any_cluster)


def test_whatever_files_and_folders_are_named(anywhere: Sandbox) -> None:
    for decoy in DECOYS:
        anywhere.file(f"{decoy}/a.json", '{"n":-1}')
    names = [f"{FOLDERS[0]}/{name}" for name in ODD]
    names += [f"{FOLDERS[1]}/sub/{name}" for name in ODD] + [f"{FOLDERS[1]}/plain.json"]
    expected = planted(anywhere, *names)
    anywhere.file(f"{FOLDERS[0]}/DONE", "no data")
    assert copied(anywhere, *FOLDERS, availability_flag="DONE") == expected


def test_a_name_that_no_jvm_can_open_is_never_counted_as_read(anywhere: Sandbox) -> None:
    planted(anywhere, "in/a.json", "in/sub/bad\udcff.json")
    where = f"file://{anywhere.folder}/in"
    expected = (
        f"input 'flights' (feed 'flights-feed'): Spark does not read 1 of the 2 files in {where}: sub/bad\\xff.json; "
        "a name that is not UTF-8 cannot be opened by any JVM: rename the file"
    )
    assert refusal(anywhere, "in") == expected
    anywhere.file("app.py", "raise SystemExit('it must not be started')")
    task = anywhere.task(
        anywhere.workflow(engine="spark-submit", path="app.py"), inputs=(anywhere.counted("flights", "in"),)
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    assert str(caught.value) == expected


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Somebody else's server, started in a shell that knows ASCII only."""
    with connect_server(tmp_path_factory.mktemp("foreign"), "foreign", LC_ALL="C") as cluster:
        yield cluster


def test_a_server_of_another_locale_is_found_out(tmp_path: Path, foreign: Cluster) -> None:
    sandbox = Sandbox(tmp_path, foreign)
    planted(sandbox, "in/a.json", *(f"in/{number}ü.json" for number in range(7)))
    expected = (
        f"input 'flights' (feed 'flights-feed'): Spark does not read 7 of the 8 files in file://{tmp_path}/in: "
        "0ü.json, 1ü.json, 2ü.json, 3ü.json, 4ü.json ... and 2 more; "
        "the JVM of Spark does not run in a UTF-8 locale: start it with LC_ALL=C.UTF-8"
    )
    said = refusal(sandbox, "in")
    assert said.startswith(expected)
    sandbox.file("app.py", "raise SystemExit('it must not be started')")
    task = sandbox.task(
        sandbox.workflow(engine="spark-submit", path="app.py"), inputs=(sandbox.counted("flights", "in"),)
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    assert str(caught.value).startswith(expected)


def test_folders_that_are_columns_stay_columns_and_texts(sandbox: Sandbox) -> None:
    planted(sandbox, "in/1/day=01/a.json", "in/1/day=1/sub/b.json", "in/2/day=a%2Fb +/c.json")
    frame = read_input(sandbox.session(), sandbox.counted("flights", "in/1", "in/2", schema="n int"))
    assert sorted(map(tuple, frame.collect())) == [(0, "01"), (1, "1"), (2, "a/b +")]
    assert frame.columns == ["n", "day"]
    assert sorted(map(tuple, read_input(sandbox.session(), sandbox.counted("flights", "in/1")).collect())) == [
        (0, "01"),
        (1, "1"),
    ]
    typed = read_input(sandbox.session(), sandbox.counted("flights", "in/1", schema="day int, n int"))
    assert sorted(map(tuple, typed.collect())) == [(0, 1), (1, 1)]


def test_folders_that_the_feeds_options_make_columns_of_are_texts(sandbox: Sandbox) -> None:
    planted(sandbox, "in/year=013/day=01/a.json", "in/year=013/day=1/b.json")
    options = {"basePath": (sandbox.folder / "in").as_uri()}
    for schema in ({}, {"schema": "n int"}):
        frame = read_input(sandbox.session(), sandbox.counted("flights", "in/year=013", options=options, **schema))
        assert sorted(map(tuple, frame.collect())) == [(0, "013", "01"), (1, "013", "1")]
    typed = read_input(
        sandbox.session(), sandbox.counted("flights", "in/year=013", options=options, schema="n int, day int")
    )
    assert sorted(typed.select("n", "day").collect()) == [(0, 1), (1, 1)]


def test_files_beside_folders_that_are_columns(sandbox: Sandbox) -> None:
    planted(sandbox, "in/day=1/a.json", "in/b.json")
    assert refusal(sandbox, "in") == (
        "input 'flights' (feed 'flights-feed'): the folders of b.json and day=1/a.json make different columns: "
        "declare `partitions: [day]` in the feed, or move them"
    )
    assert copied(sandbox, "in", partitions=["day"]) == [(0,), (1,)]


def test_a_file_that_is_named_like_the_flag_below_the_top(sandbox: Sandbox) -> None:
    planted(sandbox, "in/a.json", "in/sub/DONE")
    said = refusal(sandbox, "in", availability_flag="DONE")
    assert "does not read 1 of the 2 files" in said
    assert said.endswith(
        ": sub/DONE; Spark leaves out every file that is named like the availability flag DONE: rename the file"
    )
    (sandbox.folder / "in/sub/DONE").write_text("")  # what is empty cannot be missed
    assert copied(sandbox, "in", availability_flag="DONE") == [(0,)]


def test_a_feed_that_lists_no_folder(sandbox: Sandbox) -> None:
    planted(sandbox, "in/a.json", "in/sub/b.json")
    said = refusal(sandbox, "in", options={"recursiveFileLookup": "false"})
    assert said.endswith(": sub/b.json; the feed's option recursiveFileLookup excludes them: remove it")


def test_what_a_feed_leaves_out_itself_is_its_business(sandbox: Sandbox) -> None:
    planted(sandbox, "in/a.json", "in/b.txt")
    assert copied(sandbox, "in", options={"pathGlobFilter": "*.json"}) == [(0,)]
    planted(sandbox, "in/a.json", "in/bad\udcff.txt")
    assert "bad\\xff.txt" in refusal(sandbox, "in", options={"pathGlobFilter": "*.json"})


@pytest.mark.parametrize("name", ["_a.json", ".a.json"])
def test_an_instance_that_is_one_hidden_file(sandbox: Sandbox, name: str) -> None:
    planted(sandbox, name)
    assert refusal(sandbox, name).endswith(
        f": {sandbox.folder}/{name}; Spark treats files with such a name as hidden: rename it"
    )


def test_an_instance_that_is_one_file(sandbox: Sandbox) -> None:
    planted(sandbox, "x[1].json", "x1.json")
    assert copied(sandbox, "x[1].json") == [(0,)]


def test_what_comes_while_it_is_read_is_late_data(sandbox: Sandbox) -> None:
    planted(sandbox, "in/a.json", "in/b.json")
    data = sandbox.counted("flights", "in", schema="n int")
    sandbox.file("in/c.json", '{"n":7}')
    (sandbox.folder / "in/a.json").unlink()
    assert sorted(map(tuple, read_input(sandbox.session(), data).collect())) == [(1,), (7,)]


def test_what_was_compared_is_what_is_read(anywhere: Sandbox) -> None:
    """The folders are listed once: what comes between the comparison and the query is not half of it."""
    planted(anywhere, "in/a.json", "in/b.json")
    frame = read_input(anywhere.session(), anywhere.counted("flights", "in"))
    anywhere.file("in/c.json", '{"n":7, "m": "later"}')
    assert (frame.columns, sorted(map(tuple, frame.collect()))) == (["n"], [(0,), (1,)])


def test_paths_that_hadoop_cannot_say(sandbox: Sandbox, spark: SparkSession) -> None:
    planted(sandbox, "a:b[1]/a.json", "é\udcff/a.json")
    assert "holds a colon and one of { } [ ] * ? \\ as well" in refusal(sandbox, "a:b[1]")
    with pytest.raises(WorkflowError) as caught:
        read_input(spark, sandbox.counted("flights", "é\udcff"))
    assert str(caught.value).endswith("/é\\xff: Spark cannot read a path that is not UTF-8: rename the folder")


READS = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.read.schema("n int").json(sys.argv[1].split(",")).write.parquet(sys.argv[2])
"""


def test_programs_get_paths_and_no_patterns(anywhere: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")  # the program's JVM starts in a locale of its own
    folders = [folder.replace(",", "") for folder in (FOLDERS[0], FOLDERS[1], DECOYS[0])]
    expected = planted(anywhere, *(f"{folders[0]}/{name}" for name in ODD), f"{folders[1]}/ü.json")
    anywhere.file(f"{folders[2]}/a.json", '{"n":-1}')
    anywhere.file("app.py", READS)
    workflow = anywhere.workflow(engine="spark-submit", path="app.py", args=["${flights}", "${delays}"])
    run_workflow(anywhere.task(workflow, inputs=(anywhere.counted("flights", *folders[:2]),)))
    assert anywhere.rows() == expected


def test_programs_are_not_told_paths_with_a_comma(sandbox: Sandbox) -> None:
    planted(sandbox, "a,b/a.json")
    sandbox.file("app.py", READS)
    workflow = sandbox.workflow(engine="spark-submit", path="app.py", args=["${flights}", "${delays}"])
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(workflow, inputs=(sandbox.counted("flights", "a,b"),)))
    assert str(caught.value) == (
        f"input 'flights' (feed 'flights-feed'): file://{sandbox.folder}/a,b holds a comma, which separates "
        "the folders in ${flights}: rename the folder, or use another engine"
    )
