"""The page that shows what the interface offers: plain HTML, which loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any

from falcon_assets.surface.rest.openapi import PREFIX, openapi

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>falcon: REST</title>
</head>
<body>
"""


@cache
def page() -> str:
    """Returns the page."""
    described = openapi()
    parts = [_HEAD, "<h1>falcon: REST</h1>", f"<p>{_text(described['info']['description'])}</p>"]
    parts.append(f'<p>Below <code>{PREFIX}</code>; for programs: <a href="openapi.json">openapi.json</a>.</p>')
    for tag in (one["name"] for one in described["tags"]):
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [
            _operation(path, method, one)
            for path, methods in described["paths"].items()
            for method, one in methods.items()
            if tag in one["tags"]
        ]
    return "\n".join([*parts, "</body>", "</html>", ""])


def _operation(path: str, method: str, one: dict[str, Any]) -> str:
    head = f"<summary><code>{method.upper()} {escape(path)}</code> {_text(one['summary'])}</summary>"
    paragraphs = "".join(f"<p>{_text(text)}</p>" for text in one["description"].split("\n\n"))
    rows = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in _rows(one))
    head_row = "<tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr>"
    table = f"<table>{head_row}{rows}</table>" if rows else ""
    return f'<details id="{escape(one["operationId"])}">{head}{paragraphs}{table}</details>'


def _rows(one: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in one["parameters"]:
        name = f"<code>{escape(each['name'])}</code>{' (needed)' if each['required'] else ''}"
        yield name, each["in"], _type(each["schema"]), _text(each.get("description", ""))
    content = one.get("requestBody", {}).get("content", {})
    for media_type, body in content.items():
        schema = body["schema"]
        for name, inner in schema.get("properties", {}).items():
            needed = " (needed)" if name in schema.get("required", ()) else ""
            yield f"<code>{escape(name)}</code>{needed}", media_type, _type(inner), _text(inner.get("description", ""))


def _type(schema: dict[str, Any]) -> str:
    shown = {name: value for name, value in schema.items() if name not in ("description", "examples")}
    plain = shown.get("type")
    text = plain if isinstance(plain, str) and len(shown) == 1 else json.dumps(shown)
    return f"<code>{escape(text)}</code>"


def _text(text: str) -> str:
    return escape(text)
