"""Texts that are recorded, told or printed hold no secret, are of bounded length, and give a terminal no orders."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from falcon_assets.base.texts import HEAD, TAIL, hidden, is_long, keep_secret, recorded, visible
from falcon_assets.errors import StorageError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="colour"),
        pytest.param("a\rb\x07\x9b", "a\\rb\\x07\\x9b", id="control"),
        pytest.param("two\nlines\tand a tab", "two\nlines\tand a tab", id="lines"),
        pytest.param("\udcff\u202e", "\\udcff\\u202e", id="no-unicode-and-backwards"),
        pytest.param("Zürich – 日本", "Zürich – 日本", id="letters"),
    ],
)
def test_what_a_terminal_acts_on_is_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert str(StorageError(text)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "jdbc:postgresql://h/db?user=a&password=hunter3hunter3&x=1",
            "jdbc:postgresql://h/db?user=a&password=*****&x=1",
        ),
        ("jdbc:sqlserver://h;user=a;db_password=hunter3;x=1", "jdbc:sqlserver://h;user=a;db_password=*****;x=1"),
        ("jdbc:oracle:thin:scott/tiger@//h:1521/x", "jdbc:oracle:thin:scott/*****@//h:1521/x"),
        ("postgresql://etl:hunter3@h:5432/x", "postgresql://etl:*****@h:5432/x"),
        ("https://h:8080/a?b=c@d", "https://h:8080/a?b=c@d"),
        ("threshold=15 primary_key=7", "threshold=15 primary_key=7"),
    ],
)
def test_what_addresses_carry_is_hidden(text: str, shown: str) -> None:
    assert hidden(text) == shown
    assert hidden(shown) == shown


def test_a_secret_is_hidden_once_it_is_known() -> None:
    assert hidden("of the-test-of-texts") == "of the-test-of-texts"
    keep_secret(["the-test-of-texts"])
    assert hidden("of the-test-of-texts") == "of *****"
    assert str(StorageError("cannot open the-test-of-texts")) == "cannot open *****"


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    text = "begins " + "x" * 100_000 + " ends"
    short = recorded(text)
    assert short.startswith("begins xx")
    assert short.endswith("xx ends")
    assert "[... 96,012 characters are left out: the log of the run has them ...]" in short
    assert not is_long(short)
    assert recorded(short) == short


def test_no_half_of_a_secret_is_left_at_the_edge() -> None:
    secret = "".join(f"<{number}>" for number in range(1_000))
    keep_secret([secret])
    for before in range(HEAD - 2_000, HEAD + 6_000, 500):
        short = recorded("-" * before + secret + "-" * 20_000 + secret + "-" * (before % TAIL))
        assert "<" not in short, before


@pytest.mark.parametrize(
    "text", ["x" * 50_000_000, "a=b, " * 10_000_000, "\x1b" * 50_000_000], ids=["one", "many", "esc"]
)
def test_a_text_of_50_mb_is_recorded_at_once(text: str) -> None:
    began = time.process_time()
    assert len(recorded(text)) < 5 * (HEAD + TAIL)
    assert time.process_time() - began < 0.5


def test_secrets_may_be_found_while_others_are_kept() -> None:
    def found() -> Iterator[str]:
        keep_secret(["inner-hush"])
        yield "outer-hush"

    keep_secret(found())
    assert hidden("inner-hush outer-hush") == "***** *****"
