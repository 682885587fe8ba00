"""Plain values as YAML text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from falcon_assets.catalog.yaml_files.merging import canonical, said


class _Dumper(yaml.SafeDumper):
    """Writes no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def as_documents(data: Iterable[Any]) -> str:
    """Returns one document for each value."""
    return "".join(f"---\n{as_document(one)}" for one in data)


def as_document(data: Any, *, flow: bool | None = None) -> str:
    """Returns a text that this package reads as the same value."""
    text = _dumped(data, flow=flow)
    try:
        if said(text) == [canonical(data)]:
            return text
    except yaml.YAMLError:
        pass
    return _dumped(data, flow=flow, escaped=True)  # it reads by YAML 1.2, in which others are line breaks


def _dumped(data: Any, *, flow: bool | None = None, escaped: bool = False) -> str:
    layout: Any = {"default_style": '"', "width": 1_000_000} if escaped else {"width": 120}
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=not escaped, default_flow_style=flow, **layout
    )
    return text
