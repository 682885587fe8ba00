"""Whatever is in the XML: a valid tree or problems with positions; no other exception, and no part of the files."""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.features.falcon_xml.operations import ImportRefusedError, import_xml
from tests.features.falcon_xml.definitions import ALL

_PIECES = (
    *("", " ", "\n", "<", ">", "&", "'", '"', "/", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<x>", "</x>"),
    *("&amp;", "&#0;", "&#x2028;", "&#133;", "&x;", "<!DOCTYPE x>", 'xmlns=""', "{", "}", "${", "#", ": ", "- "),
    *("\x00", "é", "\u2028", "\U0001f600", "../..", "s3://u:p@b/c", "now(9,9)", "latest(0)", "hours(0)", "~", "null"),
    *("9999-12-31T23:59Z", "true", "1e999", "x" * 300, "${YEAR}", "=", ",", "\\", "\t", "*", "clicks", "joined"),
)
_VALUES = re.compile(r"""(?<==")[^"]*(?=")|(?<=>)[^<>]+(?=<)|(?<=")[^"<>=]+(?=")""")
_UNITS = re.compile(r"""<!--.*?-->|<[^>]*>|[\w-]+="[^"]*"|"[^"]*"|>[^<]+<|[0-9]+""", re.DOTALL)


def mutated(text: str, chance: random.Random) -> str:
    """One to three changes: values, whole tags and attributes left out, doubled or put elsewhere, or characters."""
    for _ in range(chance.randint(1, 3)):
        kind = chance.random()
        units = list((_VALUES if kind < 0.6 else _UNITS).finditer(text))
        if units and kind < 0.6:
            one = chance.choice(units)
            new = escape(chance.choice([*_PIECES, one[0] * 2, chance.choice(units)[0]]), {'"': "&quot;"})
            text = text[: one.start()] + new + text[one.end() :]
        elif units and kind < 0.9:
            one, other = chance.choice(units), chance.choice(units)
            new = chance.choice(["", one[0] * 2, other[0], f'"{chance.choice(_PIECES)}"'])
            text = text[: one.start()] + new + text[one.end() :]
        else:
            at = chance.randint(0, len(text))
            text = text[:at] + chance.choice(_PIECES) + text[at + chance.choice([0, 1, 3, 30]) :]
    return text


def imports_or_has_problems(files: dict[str, str]) -> bool:
    """Imports into nothing; whether that was written which is valid."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "xml").mkdir()
        for file, text in files.items():
            (folder / "xml" / file).write_text(text, encoding="utf-8")
        try:
            result = import_xml([folder / "xml"], folder / "defs")
        except ImportRefusedError as error:
            assert error.problems
            assert all(problem.position.line > 0 and str(problem).isprintable() for problem in error.problems)
            assert sorted(path.name for path in folder.iterdir()) == ["xml"]
            return False
        assert all(warning.line > 0 and warning.name and warning.message for warning in result.warnings)
        written = {entity.file for entity in result.entities}
        assert written == {str(path) for path in (folder / "defs").rglob("*.yaml")}
        assert not (folder / "defs" / ".falcon" / "journal.json").exists()
        if result.problems:
            with pytest.raises(InvalidDefinitionsError) as caught:
                load_entities(folder / "defs")
            assert len([one for one in caught.value.problems if not one.is_warning]) == len(result.problems)
            return False
        load_entities(folder / "defs")
        return True


def _valid_of(seeds: range) -> int:
    valid = 0
    for seed in seeds:
        chance = random.Random(seed)
        file = chance.choice(list(ALL))
        valid += imports_or_has_problems({**ALL, file: mutated(ALL[file], chance)})
    return valid


def test_without_a_mutation_it_is_valid() -> None:
    assert imports_or_has_problems(ALL)


def test_mutations() -> None:
    assert _valid_of(range(100)) > 20


@pytest.mark.soak
@pytest.mark.parametrize("thousand", range(10))
def test_ten_thousand_mutations(thousand: int) -> None:
    assert _valid_of(range(1000 * thousand, 1000 * (thousand + 1))) > 200
