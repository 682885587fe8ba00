"""What is said where there is no way."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from falcon_assets.planning.flows.gaps import gaps
from falcon_assets.planning.flows.routes import cheapest_route
from falcon_assets.planning.flows.topology import FlowExecutor, FlowPlace, Topology
from tests.planning.flows.test_routes import cluster, datasource, executor, worlds

SHOP, REPORTS = datasource("shop", "http"), datasource("reports", "mysql")
ONE, TWO = cluster("one"), cluster("two", "s3")


@pytest.mark.parametrize(
    ("executors", "sentences"),
    [
        pytest.param(
            [],
            [
                "cluster 'two' has no executor: to import from datasource 'shop', "
                "it needs one with the capability [http, s3]"
            ],
            id="no executor at all",
        ),
        pytest.param(
            [executor("two", ("mysql", "s3"))],
            [
                "no executor of cluster 'two' can import from datasource 'shop': "
                "one of them needs the capability [http, s3]"
            ],
            id="no import",
        ),
        pytest.param(
            [executor("one", ("http", "file"), ("file", "mysql"))],
            ["cluster 'two' has no executor: to copy from cluster 'one', it needs one with the capability [file, s3]"],
            id="no copy",
        ),
        pytest.param(
            [executor("one", ("http", "file")), executor("two", ("file", "s3"))],
            [
                "no executor of cluster 'two' can export to datasource 'reports': "
                "one of them needs the capability [s3, mysql]"
            ],
            id="no export, by the cluster that is a destination",
        ),
    ],
)
def test_the_missing_capability_is_named(executors: list[FlowExecutor], sentences: list[str]) -> None:
    assert [*gaps(Topology([SHOP, REPORTS, ONE, TWO], executors), SHOP, [TWO, REPORTS])] == sentences


def test_one_that_is_not_read_or_written_says_so() -> None:
    silent, deaf = datasource("silent", "http", reads=False), datasource("deaf", "mysql", writes=False)
    topology = Topology([silent, deaf, SHOP, ONE], [executor("one", ("http", "file"), ("file", "mysql"))])
    assert gaps(topology, silent, [ONE]) == ("datasource 'silent' has no interface that it is read from",)
    assert gaps(topology, SHOP, [deaf]) == ("datasource 'deaf' has no interface that it is written to",)
    assert gaps(Topology([SHOP, REPORTS], []), SHOP, [REPORTS]) == (
        "there is no cluster that could import from datasource 'shop'",
    )


@given(worlds())
def test_what_the_sentences_ask_for_makes_a_way(world: tuple[Topology, FlowPlace, list[FlowPlace]]) -> None:
    topology, source, destinations = world
    said = gaps(topology, source, destinations)
    assert bool(said) == (cheapest_route(topology, source, destinations) is None)
    for _ in range(2 * len(destinations)):  # a datasource may need an import first, and an export then
        topology = Topology(topology.places.values(), [*topology.executors, *map(asked_for, said)])
        said = gaps(topology, source, destinations)
    assert not said


def asked_for(sentence: str) -> FlowExecutor:
    """The first cluster of a sentence is the one whose executor is meant."""
    found = re.search(r"cluster '(\w+)'.* capability \[(\w+), (\w+)\]", sentence)
    assert found, sentence
    return executor(found[1], (found[2], found[3]))
