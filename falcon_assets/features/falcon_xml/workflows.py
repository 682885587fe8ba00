"""Conversion of workflows: those of unsupported engines become programs that fail with a message."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from falcon_assets.errors import printable
from falcon_assets.features.falcon_xml.elements import Element
from falcon_assets.features.falcon_xml.expressions import UntranslatableError, translated
from falcon_assets.features.falcon_xml.properties import zone_of
from falcon_assets.features.falcon_xml.remains import original
from falcon_assets.features.falcon_xml.rules import Conversion, Found, put
from falcon_assets.features.falcon_xml.values import legal_name
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, Value, comment_lines

FOLDER = "workflows"
_DEFAULT = "oozie"
_IN_FRONT = "Falcon put the inputs and the outputs in front of all arguments"
_OPTIONS = {
    "--num-executors": "spark.executor.instances",
    "--executor-memory": "spark.executor.memory",
    "--executor-cores": "spark.executor.cores",
    "--total-executor-cores": "spark.cores.max",
    "--driver-memory": "spark.driver.memory",
    "--driver-cores": "spark.driver.cores",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--queue": "spark.yarn.queue",
    "--packages": "spark.jars.packages",
}
"""Options of spark-submit that are properties as well."""
_FAILS = '''"""Stands for a workflow of Apache Falcon, of an engine that is not supported."""

{comment}


def run(spark, inputs, instance):
    raise NotImplementedError({text})
'''
_FAILS_AS_PROGRAM = '''"""Stands for a Spark program of Apache Falcon, which lies on its cluster."""

{comment}
import sys

sys.exit({text})
'''


def workflow(found: Found, conversion: Conversion) -> Value | None:
    element, process = found.element, found.parents[0]
    engine, path = (_value(element, key, default) for key, default in (("engine", _DEFAULT), ("path", "")))
    keys: Keys = {}
    of_spark = process.named("spark-attributes") if engine == "spark" else []
    if engine == "spark":
        put(keys, "engine", Node("spark-submit", found.line))
        put(keys, "path", Node(_program(found, conversion, process, of_spark, path), found.line))
    else:
        text = f"process {conversion.entity!r} runs {path!r} with the engine {engine!r}, which is not supported"
        put(keys, "engine", Node("pyspark", found.line))
        put(keys, "path", Node(_stub(conversion, process, "", text, [element], program=False), found.line))
        conversion.warn(
            found.line, found.name, f"{text}: its instances fail until workflow.path names a program that does its work"
        )
    for key in ("name", "version"):
        value = _value(element, key, "")
        if value:
            put(keys, key, Node(value, found.line))
    if _value(element, "lib", ""):
        rule = "its jars lie on the cluster: copy them into the folder of the definitions, and name them in lib"
        conversion.warn(element.line, f"{found.name}/@lib", rule)
        conversion.remains.append((element.line, original(element)))
    _spark_attributes(of_spark, keys, conversion, found)
    next(iter(keys.values())).comments = [original(element), *map(original, of_spark)]
    return keys


def late_workflow(found: Found, conversion: Conversion) -> Value | None:
    """Returns None where the workflow for late data is the normal one."""
    process = found.parents[0]
    normal = next(iter(process.named("workflow")), None)
    engine = _value(normal, "engine", _DEFAULT) if normal else _DEFAULT
    if not found.text or (normal is not None and found.text == _value(normal, "path", "")):
        return None
    late_input = found.element.attribute("input")
    suffix = f"-late-{legal_name(late_input.value.strip())}" if late_input else "-late"
    text = f"process {conversion.entity!r} runs {found.text!r} for late data with the engine {engine!r}"
    path = _stub(conversion, process, suffix, f"{text}, which is not supported", [found.element], program=False)
    conversion.warn(
        found.line, found.name, f"{text}, which is not supported: late instances fail until {path} does its work"
    )
    return {"engine": Node("pyspark", found.line), "path": Node(path, found.line)}


def spark_properties(found: Found, conversion: Conversion) -> Value | None:
    pairs: dict[str, Node] = {}
    left: list[str] = []
    try:
        words = shlex.split(found.text)
    except ValueError as error:
        conversion.warn(found.line, found.name, f"the options cannot be read, {error}: write them as properties")
        return None
    for option, value in _options(words):
        if option == "--conf" and "=" in value:
            pairs[value.partition("=")[0]] = Node(value.partition("=")[2], found.line)
        elif option in _OPTIONS and value:
            pairs[_OPTIONS[option]] = Node(value, found.line)
        else:
            left.append(f"{option} {value}".strip())
    if left:
        rule = "have no counterpart among the properties: they are left out"
        conversion.warn(found.line, found.name, f"the options {', '.join(left)} {rule}")
        conversion.remains.append((found.line, f"spark-opts: {' '.join(left)}"))
    return pairs or None


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(words):
        option, is_one, value = words[at].partition("=")
        if not is_one and at + 1 < len(words) and not words[at + 1].startswith("--"):
            at += 1
            value = words[at]
        yield option, value
        at += 1


def _program(found: Found, conversion: Conversion, process: Element, of_spark: list[Element], path: str) -> str:
    jars = [one.text.strip() for attributes in of_spark for one in attributes.named("jar")]
    program = ", ".join(filter(None, jars)) or path
    text = f"process {conversion.entity!r} runs the Spark program {program!r}, which lies on its cluster"
    where = _stub(conversion, process, "", text, [found.element, *of_spark], program=True)
    rule = "copy it into the folder of the definitions, and name it in workflow.path (and workflow.class)"
    conversion.warn(found.line, found.name, f"{text}: its instances fail until then; {rule}")
    return where


def _spark_attributes(of_spark: list[Element], keys: Keys, conversion: Conversion, found: Found) -> None:
    """Converts attributes of the program; its options are properties, by another rule."""
    for attributes in of_spark:
        attributes.taken = True
        where = f"{found.parents[0].name}/{attributes.name}"
        for key, advice in (
            ("jar", ""),
            ("class", "a stub has no class: write workflow.class beside the path of the jar"),
            ("master", "the cluster says where Spark runs: see interfaces.execute.endpoint"),
            ("mode", "the driver runs where the run does: see interfaces.execute.endpoint"),
        ):
            for element in attributes.named(key):
                element.taken = element.text_taken = True
                if advice:
                    conversion.warn(element.line, f"{where}/{key}", advice)
                    conversion.remains.append((element.line, original(element)))
        for element in attributes.named("name"):
            element.taken = element.text_taken = True
            put(keys, "name", Node(element.text.strip(), element.line))
        args = _arguments(attributes, f"{where}/arg", found, conversion)
        if args:
            put(keys, "args", Node(args, args[0].line, [_IN_FRONT] if args[0].line == attributes.line else []))


def _arguments(attributes: Element, where: str, found: Found, conversion: Conversion) -> list[Node]:
    """Returns the arguments of the program: Falcon put inputs and outputs before the declared ones."""
    process = found.parents[0]
    feeds = [one for outer in ("inputs", "outputs") for all_of in process.named(outer) for one in all_of.children]
    names = [legal_name(name.value.strip()) for one in feeds if (name := one.attribute("name"))]
    args = [Node(f"${{{name}}}", attributes.line) for name in names]
    for element in attributes.named("arg"):
        element.taken = element.text_taken = True
        text = element.text.strip()
        try:
            text = translated(text, zone_of(process), is_argument=True)
        except UntranslatableError as error:
            conversion.warn(element.line, where, f"{error}: write what is meant")
        args.append(Node(text, element.line, element.claim_comments()))
    return args


def _stub(
    conversion: Conversion, process: Element, suffix: str, text: str, originals: list[Element], *, program: bool
) -> str:
    """Writes a program that fails with a message; returns its path."""
    own = process.attribute("name")
    path = f"{FOLDER}/{legal_name(own.value.strip()) if own else 'process'}{suffix}.py"
    comment = "\n".join(comment_lines(map(original, originals)))
    said = repr(printable(f"{text}: write what it did, or name another workflow in the definition"))
    template = _FAILS_AS_PROGRAM if program else _FAILS
    conversion.files[path] = template.format(comment=comment, text=said)
    return path


def _value(element: Element, key: str, default: str) -> str:
    attribute = element.attribute(key)
    if attribute is None:
        return default
    attribute.taken = True
    return attribute.value.strip() or default
