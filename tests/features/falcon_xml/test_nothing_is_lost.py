"""Every element and attribute is in the YAML, or a warning names it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.falcon_xml.conversion import Imported, convert
from falcon_assets.features.falcon_xml.counterparts import KINDS
from falcon_assets.features.falcon_xml.elements import Element, parse_xml
from falcon_assets.features.falcon_xml.rules import Rule
from tests.features.falcon_xml.definitions import ALL
from tests.properties import examples

_STEPS = re.compile(r"@?[\w-]+")


def _words(rules: tuple[Rule, ...]) -> set[str]:
    own = {word for rule in rules for word in _STEPS.findall(re.sub(r"\[(\w+)=[^]]+\]", "", rule.source))}
    return own | {word for rule in rules for word in _words(rule.rules)}


WORDS = sorted(set().union(*map(_words, KINDS.values())) | {"property", "unknown"})
TAGS = [word for word in WORDS if not word.startswith("@")]
ATTRIBUTES = [word[1:] for word in WORDS if word.startswith("@")] + ["name", "value", "type", "strange"]
_KINDS_OF = ["data", "stats", "tmp", "write", "readonly", "execute", "workflow", "staging", "temp"]


@st.composite
def elements(draw: st.DrawFn, depth: int = 0) -> str:
    """An element of any of Falcon's names, with values that are found again."""
    tag = draw(st.sampled_from(TAGS)) if depth else draw(st.sampled_from(sorted(KINDS)))
    names = draw(st.lists(st.sampled_from(ATTRIBUTES), unique=True, max_size=3))
    values = {name: f"v{draw(st.integers(10**6, 10**7 - 1))}" for name in names}
    if "type" in values and draw(st.booleans()):
        values["type"] = draw(st.sampled_from(_KINDS_OF))
    if tag == "datasource" and not depth:
        values["type"] = "mysql"  # the others are left out as a whole
    said = "".join(f' {name}="{value}"' for name, value in values.items())
    inner = "".join(draw(st.lists(elements(depth + 1), max_size=3))) if depth < 3 else ""
    text = f"t{draw(st.integers(10**6, 10**7 - 1))}" if draw(st.booleans()) else ""
    comment = f"<!-- c{draw(st.integers(10**6, 10**7 - 1))} -->" if draw(st.booleans()) else ""
    return f"{comment}<{tag}{said}>{text}{inner}</{tag}>"


def lost(root: Element, found: Imported) -> list[str]:
    """What is neither in the YAML nor named in a warning."""
    yaml = found.text().text
    named = " ".join(f"{one.name} {one.message}" for one in found.found.warnings)
    missing = []
    for one in root.all():
        for attribute in one.attributes:
            if attribute.value not in yaml and f"@{attribute.name}" not in named and attribute.value not in named:
                missing.append(f"{one.name}/@{attribute.name}={attribute.value}")
        text = one.text.strip()
        if one.name not in named and not all(piece in yaml for piece in re.split(r"\s*[,=]\s*", text)):
            missing.append(f"{one.name}: {text}")
        if not one.attributes and not text and not one.children and f"{one.name}" not in f"{yaml} {named}":
            missing.append(one.name)
        missing += [comment for comment in (*one.comments, *one.last_comments) if comment.strip() not in yaml]
    return missing


@examples(300)
@given(elements())
def test_nothing_of_any_xml_is_lost(text: str) -> None:
    found = convert(text.encode(), "x.xml")
    assert isinstance(found, Imported)
    assert lost(parse_xml(text.encode()).root, found) == []


@pytest.mark.parametrize("text", ALL.values(), ids=list(ALL))
def test_nothing_of_a_definition_is_lost(text: str) -> None:
    found = convert(text.encode(), "x.xml")
    assert isinstance(found, Imported)
    # A secret is not copied, and the value of a default is not said twice.
    assert [one for one in lost(parse_xml(text.encode()).root, found) if "hunter2" not in one] == []


@pytest.mark.parametrize("text", ALL.values(), ids=list(ALL))
def test_warnings_are_at_the_lines_of_what_they_name(text: str) -> None:
    found = convert(text.encode(), "x.xml")
    assert isinstance(found, Imported)
    for warned in found.found.warnings:
        thing = re.sub(r"\[.*\]", "", warned.name.rpartition("/")[2].removeprefix("@"))
        assert thing.rpartition(".")[2] in text.splitlines()[warned.line - 1], warned
