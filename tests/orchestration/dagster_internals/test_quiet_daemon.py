"""What the daemon prints: news, and each once."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from falcon_assets.history.dagster_internals.quiet_daemon import OnlyNews, tell_only_news


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("dagster.daemon.SensorDaemon")
    level = found.level
    found.setLevel(logging.INFO)
    tell_only_news()
    tell_only_news()
    yield found
    found.setLevel(level)
    found.filters = [one for one in found.filters if not isinstance(one, OnlyNews)]


def printed(logger: logging.Logger, *said: tuple[int, str]) -> list[str]:
    records = [logging.LogRecord(logger.name, level, "", 0, text, None, None) for level, text in said]
    return [one.msg for one in records if logger.filter(one)]


def test_what_is_said_in_every_round_is_said_once(logger: logging.Logger) -> None:
    nothing = [
        (logging.INFO, "Checking for new runs for sensor: primary__collector"),
        (logging.INFO, "Sensor primary__collector skipped: 0 instances landed"),
        (logging.INFO, "Sensor flights__coordinator skipped: nothing is ready\nx waits for y"),
        (logging.INFO, "2 runs are currently in progress. Maximum is 2, won't launch more."),
        (logging.INFO, "Collected 2 runs for monitoring"),
        (logging.INFO, "Checking run 6c07fd12-b9ea-41cd-bc5a-b2a704f3eabd"),
    ]
    assert printed(logger, *nothing, *nothing) == [nothing[1][1], nothing[2][1], nothing[3][1]]
    landed = (logging.INFO, "Sensor primary__collector skipped: 1 instance landed")
    assert printed(logger, landed, nothing[1], *nothing) == [landed[1], nothing[1][1]]


def test_what_else_it_says_is_printed_each_time(logger: logging.Logger) -> None:
    said = [(logging.INFO, "Completed launch of run x for y"), (logging.WARNING, "Sensor y skipped: it fails")]
    assert printed(logger, *said, *said) == [text for _, text in said * 2]


def test_whoever_wants_everything_has_everything(logger: logging.Logger) -> None:
    logger.setLevel(logging.DEBUG)
    said = (logging.INFO, "Sensor primary__collector skipped: 0 instances landed")
    assert printed(logger, said, said) == [said[1], said[1]]
    assert sum(isinstance(one, OnlyNews) for one in logger.filters) == 1


def test_an_error_that_stays_is_said_every_ten_minutes(logger: logging.Logger) -> None:
    def is_printed(text: str, at: float) -> bool:
        told = (RuntimeError, RuntimeError(text), None)
        record = logging.LogRecord(logger.name, logging.ERROR, "", 0, "Sensor tick caught an error", None, told)
        record.created = at
        return bool(logger.filter(record))

    refused = "lake: the store refuses access; asked again in {} s"
    times = [0.0, 5, 300, 599, 600, 605]
    assert [is_printed(refused.format(int(at)), at) for at in times] == [True, False, False, False, True, False]
    assert is_printed("another", 606)
