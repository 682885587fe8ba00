from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.compute.engines.computing.statements import split_statements


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        pytest.param("SELECT 1", ["SELECT 1"], id="one"),
        pytest.param("SELECT 1;", ["SELECT 1"], id="closed"),
        pytest.param("SELECT 1;\n;SELECT 2\n", ["SELECT 1", "SELECT 2"], id="empty-between"),
        pytest.param("SELECT ';', \"a;b\", `c;d`; SELECT 2", ["SELECT ';', \"a;b\", `c;d`", "SELECT 2"], id="quotes"),
        pytest.param(r"SELECT 'it\'s;', '\\'; SELECT 2", [r"SELECT 'it\'s;', '\\'", "SELECT 2"], id="escapes"),
        pytest.param(r"SELECT r'\'; SELECT 2", [r"SELECT r'\'", "SELECT 2"], id="raw"),
        pytest.param("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"], id="doubled"),
        pytest.param("-- a; b\nSELECT 1 -- c;\n; SELECT 2", ["-- a; b\nSELECT 1 -- c;", "SELECT 2"], id="line-comment"),
        pytest.param("/* a; /* b; */ c; */ SELECT 1;2", ["/* a; /* b; */ c; */ SELECT 1", "2"], id="nested-comment"),
        pytest.param("SELECT 1; -- the end\n", ["SELECT 1"], id="comment-last"),
        pytest.param("SELECT 1; /* open", ["SELECT 1"], id="open-comment"),
        pytest.param("SELECT 'open; x", ["SELECT 'open", "x"], id="open-string"),
        pytest.param("-- x\nBEGIN SELECT 1; SELECT 2; END;", ["-- x\nBEGIN SELECT 1; SELECT 2; END;"], id="script"),
        pytest.param("  \n", [], id="blank"),
    ],
)
def test_splits(sql: str, texts: list[str]) -> None:
    assert [statement.text for statement in split_statements(sql)] == texts


_PIECE = st.sampled_from(["a", " ", "\n", ";", "'", '"', "`", "\\", "--", "/*", "*/", "r'", "x1", "BEGIN"])


@given(st.lists(_PIECE, max_size=30).map("".join))
def test_statements_are_pieces_of_the_file_in_order(sql: str) -> None:
    at = 0
    for statement in split_statements(sql):
        assert statement.offset >= at
        assert sql[statement.offset : statement.offset + len(statement.text)] == statement.text
        assert statement.text.strip() == statement.text != ""
        at = statement.offset + len(statement.text)


_QUOTED = st.text(alphabet="ab;-/* \n", max_size=10).map(lambda text: f"'{text}'")


@given(st.lists(_QUOTED, min_size=1, max_size=5))
def test_joining_and_splitting_gives_the_same(parts: list[str]) -> None:
    statements = [f"SELECT {part}" for part in parts]
    assert [statement.text for statement in split_statements(";\n".join(statements))] == statements
