"""Whatever is in the files: problems, never an exception of another kind."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError, MissingDefinitionsError
from tests.catalog.definition_files import CLUSTERS, FEEDS, FILES, PROCESSES, write

_ALL = f"{CLUSTERS}---\n{FEEDS}---\n{PROCESSES}"
_PIECES = st.one_of(
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


def loads_or_has_problems(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            load_entities(write(Path(folder), files))
        except InvalidDefinitionsError as error:
            assert error.problems
            assert all(str(problem).isprintable() for problem in error.problems)
        except MissingDefinitionsError as error:
            assert str(error)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(_ALL)), st.integers(0, 30), _PIECES), min_size=1, max_size=4))
def test_mutations_of_right_definitions(changes: list[tuple[int, int, str]]) -> None:
    text = _ALL
    for at, removed, piece in changes:
        text = text[:at] + piece + text[at + removed :]
    loads_or_has_problems({"all.yaml": text.encode("utf-8", "replace").decode(), "hourly.sql": ""})


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _PIECES)
_KEYS = st.sampled_from(
    ["kind", "name", "clusters", "inputs", "start", "end", "validity", "workflow", "engine", "path", "x"]
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.data())
def test_any_value_at_any_place(data: st.DataObject) -> None:
    import yaml

    documents = list(yaml.load_all(_ALL, Loader=yaml.BaseLoader))
    place = data.draw(st.sampled_from(documents))
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [
            value for value in (place.values() if isinstance(place, dict) else place) if isinstance(value, dict | list)
        ]
        if not inner:
            break
        place = data.draw(st.sampled_from(inner))
    key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
    place[key] = data.draw(_VALUES)
    loads_or_has_problems({"all.yaml": yaml.safe_dump_all(documents, sort_keys=False), "hourly.sql": ""})


@settings(max_examples=100)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"#%@`,?<~ \n\t01"), max_size=60))
def test_any_text(text: str) -> None:
    loads_or_has_problems({**FILES, "any.yaml": text})


@settings(max_examples=50)
@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "any.yaml").write_bytes(content)
        try:
            load_entities(Path(folder))
        except (InvalidDefinitionsError, MissingDefinitionsError) as error:
            assert str(error)
