"""Right definitions, and what is made of them by chance."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.catalog.definition_files import CLUSTERS, FEEDS, PROCESSES

ALL = f"{CLUSTERS}---\n{FEEDS}---\n{PROCESSES}"
PIECES = st.one_of(
    st.sampled_from(['"\\0"', '"a\\nb"', "..", '".."', "/", "months(9999)", "s3://a/b", "1" * 400, "${cluster.name}"]),
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            ":",
            "- ",
            "{",
            "}",
            "[",
            "]",
            "'",
            '"',
            "&a ",
            "*a",
            "<<: ",
            "!!int ",
            "!x ",
            "---\n",
            "#",
            "|",
            "\t",
        ]
    ),
    st.sampled_from(
        ["${", "now(9999999,0)", "months(999999)", "0001-01-01T00:00Z", "9999-12-31T23:59Z", "null", "1e999"]
    ),
    st.sampled_from(
        ["latest(0)", "dateOffset(" * 400, "storage_options", "workflow: {engine: x}", "../" * 9, "\x00", "é\u2028"]
    ),
    st.text(max_size=8),
)


def mutations(right: str) -> st.SearchStrategy[str]:
    """Texts that differ from a right one in up to four places."""
    change = st.tuples(st.integers(0, len(right)), st.integers(0, 30), PIECES)

    def changed(changes: list[tuple[int, int, str]]) -> str:
        text = right
        for at, removed, piece in changes:
            text = text[:at] + piece + text[at + removed :]
        return text.encode("utf-8", "replace").decode()

    return st.lists(change, min_size=1, max_size=4).map(changed)
