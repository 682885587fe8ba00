from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.data.input_files import everything_but, flag_options
from falcon_assets.errors import WorkflowError
from tests.builders import make_feed
from tests.properties import examples


@pytest.mark.parametrize("flag", [None, "_SUCCESS", ".done", "x._COPYING_"])
def test_spark_skips_hidden_flags_itself(flag: str | None) -> None:
    assert flag_options(make_feed(availability_flag=flag)) == {}


def test_other_flags_are_left_out_by_a_glob() -> None:
    assert flag_options(make_feed(availability_flag="OK")) == {"pathGlobFilter": "{OK?*,[^O]*,O[^K]*,O}"}


def test_a_filter_of_the_feed_stays_where_it_keeps_the_flag_out() -> None:
    assert flag_options(make_feed(availability_flag="OK", options={"pathglobfilter": "*.json"})) == {}


def test_a_filter_of_the_feed_must_not_let_the_flag_through() -> None:
    with pytest.raises(WorkflowError) as caught:
        flag_options(make_feed(availability_flag="OK", options={"pathGlobFilter": "*"}))
    assert str(caught.value) == (
        "feed 'raw-flights': the option pathGlobFilter '*' also matches the availability flag 'OK', "
        "which is not data: narrow it"
    )


def test_the_glob_means_what_hadoop_makes_of_it(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    names = st.text(alphabet="DON.-=+$()x", min_size=1, max_size=6)

    @examples(60)
    @given(names, names)
    def check(flag: str, name: str) -> None:
        glob = jvm.org.apache.hadoop.fs.GlobPattern(everything_but(flag))
        assert not glob.matches(flag)
        assert glob.matches(name) == (name != flag)

    check()
