"""What holds for all tests; what those need that are not pure is in ``tests/servers.py``, and loaded for them only."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer

from falcon_assets.base import texts
from tests.distribution import Scheduling, rank, share_of_commit, share_of_file
from tests.properties import register_profiles

register_profiles()
PURE = [Path(__file__).parent / name for name in ("model", "planning")]
"""Tests that need neither Dagster nor Spark nor a database: alone they start in less than a second."""


def pytest_configure(config: pytest.Config) -> None:
    """Sets up the signals, and what the tests need that are asked for."""
    # The shell of a script that starts the tests with `&` has them ignore Ctrl-C, and all that they start as well.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    asked = [Path(one.partition("::")[0]).resolve() for one in config.args]
    if not all(any(one.is_relative_to(folder) for folder in PURE) for one in asked):
        config.pluginmanager.import_plugin("tests.servers")


def pytest_collection_finish() -> None:
    """Leaves what is imported by now to itself: collecting garbage goes through all of it again and again.

    Forked children share it then, too: a collection writes into every object, so each of them would copy them all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Shares the tests out to the workers."""
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--rotate N``: one of N shares of the files, which the commit chooses."""
    text = "play one of N shares of the files with tests; which one depends on the commit, so all have their turn"
    parser.addoption("--rotate", type=int, default=1, metavar="N", help=text)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says which share is played."""
    shares = config.getoption("rotate")
    return f"share {share_of_commit(shares) + 1} of {shares}, as the commit says" if shares > 1 else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not of the share; the long ones come first, so that no worker is left with one at the end."""
    shares = config.getoption("rotate")
    if shares > 1:
        share = share_of_commit(shares)
        others = [item for item in items if share_of_file(item.nodeid, shares) != share]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if share_of_file(item.nodeid, shares) == share]
    items.sort(key=lambda item: rank(item.nodeid))


@pytest.fixture(scope="module", autouse=True)
def secrets_of_this_file() -> Iterator[None]:
    """What one file of tests declares as secret is none in the next one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_kept", texts._Kept())
        yield
