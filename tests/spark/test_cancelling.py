"""What an instance computes on Spark ends where it is cancelled; its neighbour in the same session goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from falcon_assets.base.cancellation import Cancellation, CancelledError, cancellable, current_cancellation
from falcon_assets.compute.spark.cancelling import cancellable_jobs
from falcon_assets.compute.spark.sessions import isolated, session_for
from falcon_assets.model.cluster import Cluster
from tests.waiting import wait_until

ENDLESS, SHORT = 10**15, 20_000_000


def in_a_child(session: SparkSession, count: int, begins: Event) -> Any:
    with isolated(session) as child:
        begins.set()
        return child.range(0, count, 1, 1).selectExpr("sum(id % 2) AS n").first()


def in_the_session(session: SparkSession, count: int, begins: Event) -> Any:
    with cancellable_jobs(session):
        begins.set()
        return session.range(0, count, 1, 1).selectExpr("sum(id % 2) AS n").first()


@pytest.mark.parametrize("compute", [in_a_child, in_the_session])
def test_one_of_two_is_cancelled(
    any_cluster: Cluster, working: str, compute: Callable[[SparkSession, int, Event], Any]
) -> None:
    session = session_for(any_cluster, working)
    cancellation, begins = Cancellation(), Event()

    def endless() -> Any:
        with cancellable(cancellation):
            return compute(session, ENDLESS, begins)

    def short() -> Any:
        with cancellable(Cancellation()):
            return compute(session, SHORT, Event())

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(endless), pool.submit(short)
        assert begins.wait(60)
        # Again, as long as its job may not have begun.
        wait_until(lambda: cancellation.cancel("killed") or first.done(), 60, "it ends")
        assert first.exception() is not None
        assert second.result().n == SHORT // 2


def test_what_is_cancelled_does_not_begin_and_what_is_published_is_not_cancelled() -> None:
    cancellation, called = Cancellation(), list[str]()
    with cancellable(cancellation):
        with current_cancellation().ended_by(lambda: called.append("ended")):
            current_cancellation().make_final()
            cancellation.cancel("too late")
        assert (cancellation.why, called) == (None, [])
    other = Cancellation()
    other.cancel("killed by ann")
    with cancellable(other):
        for begin in (current_cancellation().check, current_cancellation().make_final):
            with pytest.raises(CancelledError, match="killed by ann"):
                begin()
        with pytest.raises(CancelledError), current_cancellation().ended_by(lambda: called.append("never")):
            called.append("never")
    assert called == []
    current_cancellation().check()
