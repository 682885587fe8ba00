"""Properties with which an instance is asked to run this time."""

from __future__ import annotations

import pytest

from falcon_assets.errors import QueryError
from falcon_assets.planning.instances.asked_properties import require_usable, said_properties, with_properties
from tests.builders import make_cluster, make_process

PROCESS = make_process(properties={"factor": "2", "other": "x"})
CLUSTER = make_cluster(properties={"region": "eu"})


def test_they_go_over_what_is_declared() -> None:
    assert with_properties(PROCESS, (("factor", "3"), ("new", "${region}"))).properties == {
        "factor": "3",
        "other": "x",
        "new": "${region}",
    }
    assert with_properties(PROCESS, ()) is PROCESS


def test_secrets_are_stars_in_words() -> None:
    assert said_properties((("api_token", "hush"), ("factor", "3"))) == "api_token=*****, factor=3"


WRONG = {
    "what says which instance it is": (("nominalTime", "x"), "property 'nominalTime' says which instance it is"),
    "a hole that nothing fills": (("factor", "${nope}"), "property factor=${nope}: '${nope}': unknown variable"),
    "a secret with such a hole": (("api_token", "hush${nope}"), "property api_token=*****: it is no text"),
    "what Spark reads when it starts": (("spark.driver.memory", "1g"), "Spark reads spark.driver.memory when it"),
}


@pytest.mark.parametrize(("asked", "why"), WRONG.values(), ids=WRONG)
def test_what_an_instance_cannot_be_told(asked: tuple[str, str], why: str) -> None:
    with pytest.raises(QueryError) as raised:
        require_usable(PROCESS, CLUSTER, (asked,))
    assert str(raised.value).startswith(why)


def test_what_it_can_be_told() -> None:
    require_usable(
        PROCESS, CLUSTER, (("factor", "${region}"), ("spark.sql.shuffle.partitions", "3"), ("t", "${nominalTime}"))
    )
