"""Conversion of imports and exports of feeds, which Sqoop made."""

from __future__ import annotations

from falcon_assets.features.falcon_xml.elements import Element
from falcon_assets.features.falcon_xml.rules import Conversion, Found, Rule
from falcon_assets.features.falcon_xml.values import name, number
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, Value

_KEY = "--update-key"
_SQOOP = "it was for Sqoop, which does not run here: see import and export of a feed's cluster"


def extract(found: Found, conversion: Conversion) -> Value | None:
    kind, column = found.element.attribute("type"), next(iter(found.element.named("deltacolumn")), None)
    if kind is not None:
        kind.taken = True
    if kind is None or kind.value.strip() != "incremental" or column is None:
        return kind.value.strip() if kind else None
    column.taken = column.text_taken = True
    incremental: Keys = {"column": Node(column.text.strip(), column.line)}
    return {"incremental": Node(incremental, column.line)}


def load(found: Found, conversion: Conversion) -> Value | None:
    """Rows replace those with the key that Sqoop was given; without one they are inserted."""
    kind, argument = found.element.attribute("type"), _argument(found.parents[-2], _KEY)
    if kind is not None:
        kind.taken = True
    if argument is None:
        return "insert"
    if kind is not None and kind.value.strip() == "updateonly":
        conversion.warn(found.line, found.name, "'updateonly' is an upsert here: rows that are not there are added")
    argument.taken = True
    value = argument.attribute("value")
    for attribute in argument.attributes:
        attribute.taken = True
    columns = [one.strip() for one in (value.value if value else "").split(",")]
    key: Keys = {"key": Node([Node(one, argument.line) for one in columns if one], argument.line)}
    return {"upsert": Node(key, argument.line)}


def _argument(transfer: Element, name: str) -> Element | None:
    for arguments in transfer.named("arguments"):
        for one in arguments.named("argument"):
            said = one.attribute("name")
            if said is not None and said.value.strip() == name:
                return one
    return None


def _fields(end: str, key: str) -> tuple[Rule, ...]:
    return (
        Rule(f"{end}/fields/includes/field", f"{key}.fields.include[]"),
        Rule(f"{end}/fields/excludes/field", f"{key}.fields.exclude[]"),
    )


TRANSFERS = (
    Rule("import/source/@name", "import.source.name", name),
    Rule("import/source/@tableName", "import.source.table"),
    Rule("import/source/extract", "import.extract", extract),
    Rule("import/source/extract/mergepolicy", "import.merge"),
    *_fields("import/source", "import"),
    Rule("import/arguments/argument[name=--split-by]/@value", "import.partition_by"),
    Rule("import/arguments/argument[name=--num-mappers]/@value", "import.parallel", number),
    Rule("import/arguments/argument", advice=_SQOOP),
    Rule("export/target/@name", "export.target.name", name),
    Rule("export/target/@tableName", "export.target.table"),
    Rule("export/target/load", "export.load", load),
    *_fields("export/target", "export"),
    Rule("export/arguments/argument[name=--num-mappers]/@value", "export.parallel", number),
    Rule("export/arguments/argument", advice=_SQOOP),
)
"""Of a cluster of a feed."""
