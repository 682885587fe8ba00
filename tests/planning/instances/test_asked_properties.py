"""Properties with which an instance is asked to run this time."""

from __future__ import annotations

import pytest

from falcon_assets.errors import QueryError, WorkflowError
from falcon_assets.planning.process_instance import looked_up, require_usable, said_properties, starred, with_properties
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
    assert said_properties((("api_token", "{env: TOKEN}"),)) == "api_token={env: TOKEN}"
    assert starred((("a", "b"), ("url", "x://u:hush@h/"))) == (("a", "b"), ("url", "x://u:*****@h/"))


def test_variables_are_looked_up_where_the_instance_runs() -> None:
    asked = (("api_token", "{env: TOKEN}"), ("factor", "3"))
    assert looked_up(asked, {"TOKEN": "hush"}) == (("api_token", "hush"), ("factor", "3"))
    with pytest.raises(WorkflowError, match=r"as {env: TOKEN}, and TOKEN is not set where the run was started"):
        looked_up(asked, {})


@pytest.mark.parametrize("value", ["*****", "hush"])
def test_a_secret_that_was_asked_for_as_text_is_not_taken(value: str) -> None:
    with pytest.raises(
        WorkflowError, match="property api_token was asked for with a secret as text, which is not kept"
    ):
        looked_up((("api_token", value),), {})


WRONG = {
    "what says which instance it is": (("nominalTime", "x"), "property 'nominalTime' identifies the instance"),
    "a hole that nothing fills": (("factor", "${nope}"), "property factor=${nope}: '${nope}': unknown variable"),
    "a secret": (("api_token", "hush"), "property api_token holds a secret, and what is asked for is kept: ask with"),
    "a password in a URL": (("url", "x://u:hush@h/"), "property url holds a secret, and what is asked for is kept"),
    "a variable of ours": (("api_token", "{env: FALCON_DATABASE_URL}"), "property api_token: FALCON_DATABASE_URL is"),
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
