"""What is generated on the pages: tables of the entities from their models, commands from what their help says.

A page has it between two comments, ``<!-- table: feed -->`` and ``<!-- end -->``; others are ``counterparts: feed``,
``defaults: feed``, ``engines``, ``checks``, ``types``, ``commands`` and ``rest``. ``make reference`` writes it there,
so pages can be read as files, and a test compares.
The drawing of the layers, ``<!-- layers -->``, is made when MkDocs builds the site.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from pathlib import Path
from textwrap import wrap
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from falcon_assets.features.datasources.datasource_type import DatasourceType, datasource_types
from falcon_assets.features.falcon_xml.counterparts import KINDS
from falcon_assets.features.falcon_xml.defaults import DEFAULTS, Default
from falcon_assets.features.falcon_xml.rules import Rule
from falcon_assets.features.templates.definitions import Pack, Parameter, Template
from falcon_assets.model.base import EntityName, NonEmpty, key_meanings
from falcon_assets.model.cluster import Cluster, StorageOption
from falcon_assets.model.completeness import Completeness, Percentage
from falcon_assets.model.cron_schedule import CronSchedule
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.executor import Capability, ClusterExecutor, PlaceKind
from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Feed, Locations, Rollup, Table
from falcon_assets.model.flow import Flow
from falcon_assets.model.frequency import Frequency, Step
from falcon_assets.model.instant import Instant
from falcon_assets.model.notification import Notification, UrlVariable
from falcon_assets.model.path_template import LegalFolder, LegalPath, PathTemplate
from falcon_assets.model.process import Process
from falcon_assets.model.quality_rules import RULES, Bound, Value
from falcon_assets.model.queue import Queue
from falcon_assets.model.reference import EncryptedValue, EnvironmentValue, FileValue
from falcon_assets.model.shared import Acl, TemplateUse, TimeZoneName, Validity
from falcon_assets.model.transfer import ExportOptions, ImportOptions
from falcon_assets.model.workflow import engines
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.rest.endpoints import endpoints

TABLES: dict[str, type[BaseModel]] = {
    "cluster": Cluster,
    "datasource": Datasource,
    "feed": Feed,
    "process": Process,
    "validity": Validity,
    "acl": Acl,
    "notification": Notification,
    "locations": Locations,
    "table": Table,
    "completeness": Completeness,
    "rollup": Rollup,
    "queue": Queue,
    "flow": Flow,
    "executor": ClusterExecutor,
    "template": Template,
    "parameter": Parameter,
    "pack": Pack,
    "template_use": TemplateUse,
}
"""Name on a page -> model."""
ENGINES: tuple[type[BaseModel], ...] = engines()
CHECKS: tuple[type[BaseModel], ...] = RULES
CHECKOUT = Path(__file__).parents[1]
PACKAGE = CHECKOUT / "falcon_assets"
_DRAWING = """
<svg class="layers" role="img" aria-label="The layers of the package" viewBox="0 0 760 {height}"><style>
.layers {{font: 13px sans-serif; fill: currentColor}}
.layers rect, .layers path {{fill: none; stroke: currentColor; stroke-opacity: 0.5}}
.layers .name {{font: bold 13px monospace}}
.layers .part {{font: 12px monospace; fill-opacity: 0.7; white-space: pre}}
</style>{body}</svg>
"""
_LINKS: dict[Any, str] = {
    Validity: "[validity](#validity)",
    Acl: "[acl](entities.md#acl)",
    ClusterExecutor: "[executor](../guides/executors.md)",
    Notification: "[notification](#notification)",
    Locations: "[locations](#locations)",
    Table: "[table](#table)",
    Completeness: "[completeness](#completeness)",
    Rollup: "[rollup](#rollup)",
    Parameter: "[parameter](#parameter)",
    TemplateUse: "[template](templates.md#made-from-a-template)",
    ImportOptions: "[import](#feed)",
    ExportOptions: "[export](#feed)",
    **dict.fromkeys(ENGINES, "[workflow](#workflow)"),
    **dict.fromkeys(CHECKS, "[check](#checks)"),
}
"""Models that are described once, for all that have them."""
_WORDS: dict[Any, str] = {
    **_LINKS,
    EntityName: "name",
    NonEmpty: "text",
    Frequency: "duration",
    CronSchedule: "cron line",
    Step: "frequency",
    Instant: "instant",
    InstanceExpression: "[expression](expressions.md)",
    PathTemplate: "path template",
    TimeZoneName: "IANA zone",
    PlaceKind: "kind",
    Capability: "pair",
    LegalPath: "URL or path",
    LegalFolder: "path",
    StorageOption: "option",
    EnvironmentValue: "`{env: NAME}`",
    UrlVariable: "`{env: NAME}`",
    FileValue: "`{file: PATH}`",
    EncryptedValue: "`{encrypted: ...}`",
    EventKind: "event",
    Value: "value",
    Bound: "number or text or time",
    Any: "value",
    dict[str, Any]: "mapping",
    datetime: "instant",
    str: "text",
    bool: "`true` `false`",
    int: "whole number",
    float: "number",
    Decimal: "number",
    Percentage: "number",
}
_REGION = re.compile(r"^<!-- (?!layers|end)(\w+)(?:: (\w+))? -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_WIDTH = 110
"""Of what commands say, in characters."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    return markdown.replace("<!-- layers -->", layers()) if "<!-- layers -->" in markdown else markdown


def current(page: str) -> str:
    """A page with what is generated as it has to be now.

    Raises:
        ValueError: a comment names what is not generated.
    """
    return _REGION.sub(lambda found: f"{_comment(found)}\n\n{_generated(found).strip()}\n\n<!-- end -->", page)


def _comment(found: re.Match[str]) -> str:
    return found[0].partition("\n")[0]


def _generated(found: re.Match[str]) -> str:
    if found[1] == "table" and found[2] in TABLES:
        return table(TABLES[found[2]])
    if found[1] == "counterparts" and found[2] in KINDS:
        return counterparts(KINDS[found[2]])
    if found[1] == "defaults" and found[2] in DEFAULTS:
        return defaults(DEFAULTS[found[2]])
    whole: dict[str, Callable[[], str]] = {
        "types": types,
        "engines": lambda: "\n".join(f"#### {_tag(model, 'engine')}\n\n{table(model)}" for model in ENGINES),
        "checks": lambda: "\n".join(f"#### {_tag(model, 'rule')}\n\n{table(model)}" for model in CHECKS),
        "commands": lambda: commands(falcon, "falcon"),
        "rest": rest,
    }
    if found[1] in whole:
        return whole[found[1]]()
    raise ValueError(f"{_comment(found)}: nothing of that name is generated")


def types() -> str:
    """What the types of datasources read and write."""
    head = "| Type | Endpoint | An import reads | An export writes by | Its driver |\n| --- | --- | --- | --- | --- |\n"

    def row(one: DatasourceType) -> str:
        package = f"`pip install '{one.package}'`" if one.package else "is there"
        return f"| `{one.name}` | `{one.endpoint}` | {_listed(one.reads)} | {_listed(one.loads)} | {package} |\n"

    return head + "".join(map(row, datasource_types().values()))


def _listed(words: Collection[str]) -> str:
    return ", ".join(f"`{one}`" for one in words)


def commands(command: click.Command, name: str, around: click.Context | None = None) -> str:
    """What a command says of itself when it is asked for help, and those below it after it."""
    context = click.Context(
        command, around, info_name=name, max_content_width=_WIDTH, terminal_width=_WIDTH, **command.context_settings
    )
    said = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    level = min(4, len(context.command_path.split()) + 1)
    text = f"{'#' * level} {context.command_path}\n\n```text\n{said}\n```\n\n"
    if isinstance(command, click.Group):
        below = [(command.get_command(context, one), one) for one in command.list_commands(context)]
        text += "".join(commands(known, one, context) for known, one in below if known and not known.hidden)
    return text


def rest() -> str:
    """Returns the table of the paths of REST."""
    rows = (
        f"| `{one.method} {one.path}` | `falcon {one.operation.command}` | {one.operation.role.name.lower()}"
        f"{', owner' if one.operation.of_owners else ''} |"
        for one in endpoints()
    )
    return "\n".join(["| Method and path | Command | For |", "| --- | --- | --- |", *rows])


def counterparts(rules: Sequence[Rule]) -> str:
    """What becomes of each element and attribute of Falcon's XML."""
    rows = "".join(f"| `{source}` | {said} |\n" for source, said in dict.fromkeys(_counterparts(rules)))
    return f"| Falcon's XML | Here |\n| --- | --- |\n{rows}"


def defaults(of_kind: Sequence[Default]) -> str:
    """What Falcon did where its XML said nothing, and what the import writes."""
    rows = "".join(f"| {_code(one.source)} | {one.meaning} | {one.written} |\n" for one in of_kind)
    return f"| Not given in Falcon's XML | Falcon's default | The import writes |\n| --- | --- | --- |\n{rows}"


def _code(source: str) -> str:
    return source if " " in source else f"`{source}`"


def _counterparts(rules: Sequence[Rule], around: str = "", within: str = "") -> Iterator[tuple[str, str]]:
    for rule in rules:
        if rule.rules:
            yield from _counterparts(rule.rules, f"{around}{rule.source}/", f"{within}{rule.key}.")
        else:
            key = f"`{within}{rule.key}`"
            yield around + rule.source, key if rule.key else f"not imported: {rule.advice}".replace("|", r"\|")


def _tag(model: type[BaseModel], key: str) -> str:
    (name,) = get_args(model.model_fields[key].annotation)
    return str(name)


def table(model: type[BaseModel]) -> str:
    """The keys of a model, those inside of its parts with the path that leads to them."""
    head = "| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"
    return head + "".join(f"| `{key}` | {kind} | {default} | {said} |\n" for key, kind, default, said in _rows(model))


def _rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    hints = get_type_hints(model, include_extras=True)
    meanings = key_meanings(model)
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        parts = [part for part in _models(hints[name]) if part not in _WORDS]
        many = "[]" if _is_list(hints[name]) else ""
        kind = ("list" if many else "mapping") if parts else word(hints[name])
        said = " ".join(meanings.get(name, "").replace("``", "`").split())
        yield key, kind, _default(field), said.replace("|", r"\|")
        for part in parts:
            yield from _rows(part, f"{key}{many}.")


def word(annotation: Any) -> str:
    """What a value of that type is called."""
    origin, args = get_origin(annotation), get_args(annotation)
    said = next((said for known, said in _WORDS.items() if known == annotation), "")
    if not said and origin is Annotated:
        said = _bounds(args[1:]) or word(args[0])
    elif not said and origin is Literal:
        said = " ".join(f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in args)
    elif not said and origin in (Union, UnionType):
        said = " or ".join(dict.fromkeys(word(arg) for arg in args if arg is not NoneType))
    elif not said and origin in (tuple, dict):
        said = f"list of {word(args[0])}s" if origin is tuple else f"map of {word(args[1])}s"
    if not said:
        raise ValueError(f"docs/generated.py has no word for {annotation}")
    return said


def _bounds(metadata: tuple[Any, ...]) -> str:
    """``1 to 100``, where a number has both."""
    rules = [rule for part in metadata for rule in (part, *getattr(part, "metadata", ()))]
    ends = {side: getattr(rule, side) for rule in rules for side in ("ge", "le") if hasattr(rule, side)}
    return f"{ends['ge']} to {ends['le']}" if len(ends) == 2 else ""


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or (
        get_origin(annotation) is Annotated and _is_list(get_args(annotation)[0])
    )


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [] if get_origin(annotation) is dict else [one for part in get_args(annotation) for one in _models(part)]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value in (None, "") or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`[{', '.join(value)}]`" if isinstance(value, tuple) else f"`{value}`"


def layers() -> str:
    """The layers of the package as a drawing, the highest first: their names, what they say they are, their parts."""
    boxes, y, order = [], 1, _lowest_first("PARTS")
    for name in reversed(_lowest_first("LAYERS")):
        lines = [f"<tspan>{escape(line)}</tspan>" for line in wrap(_sentence(name), 98)]
        known = order.get(name, [""])
        found = sorted(part.parent.name for part in (PACKAGE / name).glob("*/__init__.py"))
        parts = sorted(found, key=lambda part: -known.index(part if part in known else ""))
        lines += [f'<tspan class="part">{line}</tspan>' for line in wrap("   ".join(parts), 76)]
        boxes.append(f'<rect x="40" y="{y}" width="719" height="{17 * len(lines) + 15}" rx="4"/>')
        boxes.append(f'<text x="52" y="{y + 21}" class="name">{name}</text>')
        boxes += [f'<text x="200" y="{y + 21 + 17 * at}">{line}</text>' for at, line in enumerate(lines)]
        y += 17 * len(lines) + 23
    arrow = f'<path d="M 20 1 V {y - 10} m -6 -9 l 6 9 l 6 -9"/>'
    return _DRAWING.format(height=y, body=arrow + "".join(boxes))


def _lowest_first(name: str) -> Any:
    """An order that the test of the layers checks."""
    tree = ast.parse((CHECKOUT / "tests" / "test_layers.py").read_text())
    assigned = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    return ast.literal_eval(assigned[name])


def _sentence(layer: str) -> str:
    file = PACKAGE / layer / "__init__.py"
    text = ast.get_docstring(ast.parse((file if file.is_file() else PACKAGE / f"{layer}.py").read_text())) or ""
    return text.partition("\n")[0].replace("``", "")


def main(arguments: list[str]) -> int:
    """Writes what has to be on the pages now; with ``--check`` only says what would be written. The exit code."""
    stale = 0
    for page in sorted((CHECKOUT / "docs").rglob("*.md")):
        text = page.read_text()
        if (now := current(text)) != text:
            stale += 1
            sys.stdout.write(f"{page.relative_to(CHECKOUT)}\n")
            if "--check" not in arguments:
                page.write_text(now)
    return int(stale > 0 and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
