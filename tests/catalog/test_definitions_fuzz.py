"""Whatever is in the files: problems, never an exception of another kind."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError, MissingDefinitionsError
from tests.catalog.definition_files import FILES, write
from tests.catalog.mutations import ALL, PIECES, mutations
from tests.properties import examples


def loads_or_has_problems(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            load_entities(write(Path(folder), files))
        except InvalidDefinitionsError as error:
            assert error.problems
            assert all(str(problem).isprintable() for problem in error.problems)
        except MissingDefinitionsError as error:
            assert str(error)


@examples(300)
@given(mutations(ALL))
def test_mutations_of_right_definitions(text: str) -> None:
    loads_or_has_problems({"all.yaml": text, "hourly.sql": ""})


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), PIECES)
_KEYS = st.sampled_from(
    ["kind", "name", "clusters", "inputs", "start", "end", "validity", "workflow", "engine", "path", "x"]
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)


@examples(200)
@given(st.data())
def test_any_value_at_any_place(data: st.DataObject) -> None:
    import yaml

    documents = list(yaml.load_all(ALL, Loader=yaml.BaseLoader))
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


@examples(100)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"#%@`,?<~ \n\t01"), max_size=60))
def test_any_text(text: str) -> None:
    loads_or_has_problems({**FILES, "any.yaml": text})


@examples(50)
@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "any.yaml").write_bytes(content)
        try:
            load_entities(Path(folder))
        except (InvalidDefinitionsError, MissingDefinitionsError) as error:
            assert str(error)
