"""Lines of logs: as they are in the log, however it is read, and never more of it than asked for."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.base.texts import hides
from falcon_assets.instances.views.logs.log_lines import Read, last_of, lines_of, reading, tail_of


def of(data: bytes) -> Read:
    return lambda offset, size: data[offset : offset + size]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=9)))
def test_lines_are_those_of_the_log(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    assert list(lines_of(of(data))) == lines
    assert tail_of(of(data), len(data)) == last_of(lines)


def test_a_line_without_end_comes_in_parts() -> None:
    parts = list(lines_of(of(b"x" * 200_000 + b"\nend")))
    assert ("".join(parts[:-1]), parts[-1]) == ("x" * 200_000, "end")
    assert max(map(len, parts)) <= 1 << 17


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("".join(f"line {number}\n" for number in range(1_000_000)))
    offsets = []

    def read(offset: int, size: int) -> bytes:
        offsets.append(offset)
        return reading(file)(offset, size)

    lines, cut = tail_of(read, file.stat().st_size)
    assert (lines, cut) == ([f"line {number}" for number in range(999_900, 1_000_000)], True)
    assert min(offsets) >= file.stat().st_size - (1 << 20)


def test_what_has_gone_and_what_is_no_text(tmp_path: Path) -> None:
    assert list(lines_of(reading(tmp_path / "gone"))) == []
    assert list(lines_of(of(b"\xff one\r\ntwo"))) == ["� one", "two"]


def test_of_secrets_the_longest_is_hidden_first() -> None:
    assert hides(["key", "", "key-and-more"])("the key, the key-and-more") == "the *****, the *****"
