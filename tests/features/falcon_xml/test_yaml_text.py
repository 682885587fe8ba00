"""What is written is read back as it was, whatever is in values and comments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.features.falcon_xml.yaml_text import Node, yaml_text
from tests.properties import examples

_TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["yes", "null", "~", "1", "1.0", "0x1", "a: b", "a #b", "- a", "*", "&a", "!x", "%x", "`", ""]),
    st.sampled_from(["2012-01-01T00:00Z", "2012-01-01", "now(-1,0)", "${YEAR}/x", "/a b/c", "a ", " a", "x" * 200]),
)
_COMMENTS = st.lists(st.one_of(st.text(max_size=20), st.just("a\u2028kind: x\x85y: z\n\nb")), max_size=2)


def _nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Node]:
    return st.builds(Node, inner, st.integers(1, 99), _COMMENTS)


_VALUES = st.recursive(
    st.one_of(_TEXTS, st.integers(-9, 10**9), st.booleans()),
    lambda inner: st.one_of(
        st.lists(_nodes(inner.filter(lambda value: not isinstance(value, list))), max_size=3),
        st.dictionaries(_TEXTS.filter(bool), _nodes(inner), max_size=4),
    ),
    max_leaves=12,
)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(node.value) for key, node in value.items()}
    return [plain(node.value) for node in value] if isinstance(value, list) else value


@examples(100)
@given(
    st.dictionaries(_TEXTS.filter(lambda key: key not in ("", "<<")), _nodes(_VALUES), min_size=1), _COMMENTS, _COMMENTS
)
def test_round_trip(keys: dict[str, Node], head: list[str], tail: list[str]) -> None:
    said = plain(keys)
    made = yaml_text(keys, head, tail)
    files = Files()
    read_file(Path("x.yaml"), made.text.encode(), files)
    assert [str(problem) for problem in files.problems] == []
    assert files.documents[0].data == said
    assert len(made.origins) == len(made.text.split("\n")) - 1


def test_layout_and_origins() -> None:
    keys = {
        "kind": Node("feed", 1),
        "tags": Node({"a": Node("b", 3)}, 3, [" many\n   lines ", ""]),
        "clusters": Node([Node({"name": Node("x", 6, ["the name"]), "on": Node(True, 7)}, 6, ["one"])], 5),
    }
    made = yaml_text(keys, ["top"], ["end"])
    assert made.text == (
        "# top\nkind: feed\n# many\n#   lines\ntags: {a: b}\nclusters:\n  # one\n  # the name\n"
        '  - {name: x, "on": true}\n# end\n'
    )
    assert [made.origin(line) for line in (2, 5, 6, 9)] == [1, 3, 5, 6]
