from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.replication import ReplicationOptions, option_problems, replication_options

OPTIONS = (
    "parallel, order, timeout, maxMaps, mapBandwidth, overwrite, ignoreErrors, skipChecksum, removeDeletedFiles, "
    "preservePermission, preserveTimes, preserveUser, preserveGroup"
)


def test_defaults() -> None:
    assert replication_options({"region": "eu", "order-by": "x"}) == ReplicationOptions()
    assert ReplicationOptions().preserved == ()


def test_all_of_them() -> None:
    declared = {
        "parallel": "3",
        "order": "LAST_ONLY",
        "timeout": "hours(2)",
        "maxMaps": "5",
        "mapBandwidth": "2.5",
        "overwrite": "true",
        "ignoreErrors": "true",
        "skipChecksum": "true",
        "removeDeletedFiles": "false",
        "preservePermission": "true",
        "preserveTimes": "true",
        "preserveUser": "true",
        "preserveGroup": "true",
    }
    timeout = Frequency.parse("hours(2)")
    options = replication_options(declared)
    expected = ReplicationOptions(
        3, "LAST_ONLY", timeout, 5, 2.5, None, True, True, True, False, True, True, True, True
    )
    assert options == expected
    assert options.preserved == ("preservePermission", "preserveTimes", "preserveUser", "preserveGroup")


WRONG = {
    "no number": ("parallel", "many", "'many' is not a whole number from 1 to 9999"),
    "zero": ("maxMaps", "0", "'0' is not a whole number from 1 to 9999"),
    "no rate": ("mapBandwidth", "10MB", "'10MB' is not a number of MB per second above 0"),
    "a rate of nothing": ("mapBandwidth", "0.0", "'0.0' is not a number of MB per second above 0"),
    "no truth": ("overwrite", "yes", '\'yes\' is not legal: write "true" or "false"'),
    "no order": ("order", "fifo", "'fifo' is not legal: write FIFO, LIFO or LAST_ONLY"),
    "no duration": (
        "timeout",
        "2h",
        "'2h' is not a frequency: write minutes(n), hours(n), days(n) or months(n) with a whole n > 0",
    ),
    "misspelt": ("maxmaps", "5", "unknown property 'maxmaps' (did you mean 'maxMaps'?)"),
    "in another style": ("map_bandwidth", "5", "unknown property 'map_bandwidth' (did you mean 'mapBandwidth'?)"),
    "not offered": ("preserveAcl", "true", f"'preserveAcl' is not an option of replication here; options: {OPTIONS}"),
    "distcp's own": (
        "distcp.atomic",
        "true",
        f"'distcp.atomic' is not an option of replication here; options: {OPTIONS}",
    ),
    "said otherwise": ("skipcrccheck", "", f"'skipcrccheck' is not an option of replication here; options: {OPTIONS}"),
}


@pytest.mark.parametrize(("name", "value", "message"), WRONG.values(), ids=WRONG)
def test_wrong(name: str, value: str, message: str) -> None:
    assert list(option_problems({name: value, "region": "eu"})) == [(name, message)]
    with pytest.raises(ExpressionError) as raised:
        replication_options({name: value})
    assert str(raised.value) == f"properties.{name}: {message}"


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_any_properties_are_read_or_refused(properties: dict[str, str]) -> None:
    problems = list(option_problems(properties))
    try:
        replication_options(properties)
    except ExpressionError:
        assert problems
    else:
        assert not problems
