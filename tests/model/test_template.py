from __future__ import annotations

import pytest

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call
from falcon_assets.model.template import Variable, parse_template, value_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain $5 {x}", ("plain $5 {x}",)),
        ("${a}${b.c-d}", (Variable("a"), Variable("b.c-d"))),
        ("x/${ cluster.colo }/y", ("x/", Variable("cluster.colo"), "/y")),
        ("day ${now(-1, 0)}", ("day ", Call("now", (-1, 0)))),
    ],
)
def test_parts(text, parts):
    assert parse_template(text) == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a/${b", "'a/${b': a '${' is not closed"),
        ("${a${b}}", "'${a${b}}': a '${' is not closed"),
        ("${}", "'' is not a legal expression: it ends too early"),
        ("${now(0)}", "'now(0)' is not a legal expression: now takes 2 argument(s), not 1"),
    ],
)
def test_exact_messages(text, message):
    with pytest.raises(ExpressionError) as caught:
        parse_template(text)
    assert str(caught.value) == message


def test_values():
    assert value_of("${a}", Variable("a"), {"a": "1"}) == "1"
    with pytest.raises(ExpressionError) as caught:
        value_of("x/${clustr.colo}", Variable("clustr.colo"), {"cluster.colo": "east"})
    assert str(caught.value) == "'x/${clustr.colo}': unknown variable '${clustr.colo}' (did you mean 'cluster.colo'?)"
