"""``falcon template``: packs and who may use and change them; entities know their template, and follow it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from falcon_assets.catalog.store import load_entities
from falcon_assets.operations import acting
from falcon_assets.operations.audit import list_audit
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml

TEMPLATE = """\
kind: template
name: nightly
version: {version}
description: A folder that is kept for a while
parameters:
  name: {{type: name}}
  limit: {{type: duration, default: days(3)}}
  key: {{secret: true, optional: true}}
{more}entities:
  - kind: feed
    name: "{{{{ name }}}}"
    tags: {{kept: "{{{{ limit }}}}"{tag}}}
    frequency: days(1)
    locations:
      data: "s3://lake/{{{{ name }}}}/${{YEAR}}-${{MONTH}}-${{DAY}}"
      storage_options: {{secret: "{{{{ key }}}}"}}
    clusters:
      - name: primary
        validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
        retention: {{limit: "{{{{ limit }}}}"}}
{extra}"""
OTHER = """\
  - kind: feed
    name: "{{ name }}-other"
    frequency: days(1)
    locations: {data: "/{{ name }}/other/${YEAR}-${MONTH}-${DAY}"}
    clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
"""


def template(version: int = 1, *, tag: str = "", more: str = "", extra: str = "") -> str:
    return TEMPLATE.format(version=version, tag=tag, more=more, extra=extra)


@pytest.fixture
def folder(
    tmp_path: Path,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """The folder of packs; the definitions have a cluster only."""
    shutil.rmtree(write_entities({"a.yaml": cluster_yaml()}) / "feeds", ignore_errors=True)
    monkeypatch.setenv("FALCON_PACKS", str(tmp_path / "packs"))
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "packs"
    sys.modules.pop("their_pack", None)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(falcon, ["template", *arguments])


def done(*arguments: str) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def refused(*arguments: str) -> str:
    result = call(*arguments)
    assert result.exit_code == 1, result.output
    return str(result.exception)


def new(text: str, *options: str) -> str:
    Path("nightly.yaml").write_text(text)
    return done("new", "ops/nightly", "nightly.yaml", *options)


def feed(name: str) -> dict[str, Any]:
    root = load_root()
    (found,) = [
        one for file in root.rglob("*.yaml") for one in yaml.safe_load_all(file.read_text()) if one["name"] == name
    ]
    return dict(found)


def load_root() -> Path:
    with open_installation() as installation:
        return installation.settings.entity_defs


def test_entities_know_their_template(folder: Path) -> None:
    assert new(template()) == "template ops/nightly is written (packs/ops/nightly.yaml)\n"
    assert done("submit", "nightly", "-p", "name=raw", "-p", "key={env: KEY}").startswith("feed raw is submitted (")
    assert feed("raw")["template"] == {"name": "ops/nightly", "version": 1, "parameters": {"name": "raw"}}
    assert feed("raw")["locations"]["storage_options"] == {"secret": {"env": "KEY"}}
    assert load_entities(load_root()).feeds["raw"].template is not None
    assert "unchanged" in done("submit", "ops/nightly", "-p", "name=raw", "-p", "key={env: KEY}")
    shown = json.loads(done("show", "nightly", "--json"))
    assert shown["entities"] == [{"kind": "feed", "name": "raw", "version": 1}]
    assert shown["schema"]["properties"]["name"]["type"] == "string"
    listed = json.loads(done("list", "--json", "--filter", "pack=ops"))
    assert [(one["name"], one["entities"]) for one in listed["items"]] == [("ops/nightly", 1)]
    again = refused("submit", "nightly", "-p", "name=raw", "-p", "limit=days(4)")
    assert again.startswith("feed 'raw' (") and again.endswith(
        "is submitted already, with another definition: use --update"
    )
    assert "would be updated" in done(
        "submit", "nightly", "-p", "name=raw", "-p", "limit=days(4)", "--update", "--dry-run"
    )
    assert feed("raw")["tags"] == {"kept": "days(3)"}


def test_an_update_says_what_it_would_change_and_changes_it_on_request(folder: Path) -> None:
    new(template(extra=OTHER))
    done("submit", "nightly", "-p", "name=raw", "-p", "key={env: KEY}", "--reason", "first")
    done("submit", "nightly", "-p", "name=web", "-p", "limit=days(5)")
    file = next(load_root().rglob("raw.yaml"))
    file.write_text("# Kept by us.\n" + file.read_text())
    changed = template(2, tag=", by: ops", extra="")
    Path("nightly.yaml").write_text(changed)
    assert "give --replace" in refused("new", "ops/nightly", "nightly.yaml")
    assert "write a higher one" in old_version(changed)
    Path("nightly.yaml").write_text(changed)
    said = done("new", "ops/nightly", "nightly.yaml", "--replace")
    assert said.splitlines() == [
        "template ops/nightly is written (packs/ops/nightly.yaml)",
        *(f"feed {name} is made from version 1" for name in ("raw-other", "raw", "web-other", "web")),
        "falcon template update ops/nightly would change them: see --dry-run",
    ]
    assert feed("raw")["tags"] == {"kept": "days(3)"}
    tried = done("update", "nightly", "--dry-run")
    assert "+tags: {kept: days(3), by: ops}" in tried and "feed web would be updated" in tried
    assert "+  secret" not in tried
    assert feed("raw")["template"]["version"] == 1
    updated = done("update", "nightly")
    assert "feed raw is updated" in updated and "feed web is updated" in updated
    assert "ops/nightly does not make it any more: it stays, until falcon entity delete raw-other" in updated
    assert (feed("raw")["tags"], feed("web")["tags"]) == (
        {"kept": "days(3)", "by": "ops"},
        {"kept": "days(5)", "by": "ops"},
    )
    assert feed("raw")["template"]["version"] == 2
    assert feed("raw")["locations"]["storage_options"] == {"secret": {"env": "KEY"}}
    assert file.read_text().startswith("# Kept by us.\n")
    assert "feed raw is unchanged" in done("update", "nightly")


def old_version(text: str) -> str:
    Path("nightly.yaml").write_text(text.replace("version: 2", "version: 1"))
    return refused("new", "ops/nightly", "nightly.yaml", "--replace")


def test_a_new_version_that_needs_more_says_what(folder: Path) -> None:
    new(template())
    done("submit", "nightly", "-p", "name=raw")
    new(template(2, more="  by: {}\n", tag=', by: "{{ by }}"'), "--replace")
    file = load_root() / "feeds/raw.yaml"
    line = next(number for number, one in enumerate(file.read_text().splitlines(), 1) if "parameters:" in one)
    assert refused("update", "nightly").splitlines()[0] == f"{file}:{line}: by: required key is missing"
    assert feed("raw")["template"]["version"] == 1
    done("submit", "nightly", "-p", "name=raw", "-p", "by=me", "--update")
    assert feed("raw")["tags"]["by"] == "me"


def test_problems_of_entities_have_the_line_of_the_template(folder: Path) -> None:
    new(template().replace("name: primary", "name: primry"))
    line = template().splitlines().index("      - name: primary") + 1
    said = refused("submit", "nightly", "-p", "name=raw").splitlines()
    assert (
        said[0]
        == f"packs/ops/nightly.yaml:{line}: clusters[0].name: unknown cluster 'primry' (did you mean 'primary'?)"
    )
    assert said[1] == "          - name: primry"
    assert not [*load_root().rglob("raw.yaml")]


def test_a_template_with_problems_leaves_the_others(folder: Path) -> None:
    new(template())
    broken = template().replace("name: nightly", "name: broken").replace("days(3)", "3")
    (folder / "ops" / "broken.yaml").write_text(broken)
    listed = json.loads(done("list", "--json", "--filter", "pack=ops"))
    assert [one["name"] for one in listed["items"]] == ["ops/nightly"]
    assert len(listed["problems"]) == 1
    assert refused("show", "broken").startswith("packs/ops/broken.yaml:7: parameters.limit.default: is not a legal")
    assert refused("show", "nightli") == (
        "there is no template 'nightli' (did you mean 'nightly'?); falcon template list has all"
    )


@pytest.mark.parametrize(
    ("permission", "use"), [("0755", True), ("0750", False)], ids=["others may use it", "only the owner"]
)
def test_packs_belong_to_somebody(folder: Path, monkeypatch: pytest.MonkeyPatch, permission: str, use: bool) -> None:
    new(template())
    (folder / "ops" / "pack.yaml").write_text(
        f'kind: pack\nname: ops\nacl: {{owner: somebody-else, permission: "{permission}"}}\n'
    )
    monkeypatch.setattr(acting, "_groups", lambda name, own: frozenset())
    denied = refused("new", "ops/nightly", "nightly.yaml", "--replace")
    assert "may not change pack 'ops', which belongs to 'somebody-else'" in denied
    if use:
        assert "is submitted" in done("submit", "nightly", "-p", "name=raw")
    else:
        assert "ops/nightly" not in done("list")
        for words in (("show", "nightly"), ("render", "nightly", "-p", "name=a"), ("update", "nightly")):
            assert "may not read pack 'ops', which belongs to 'somebody-else'" in refused(*words)
        assert "may not read pack 'ops'" in refused("submit", "nightly", "-p", "name=raw")
    with open_installation() as installation:
        told = [(one.operation, one.result) for one in list_audit(installation).items]
    assert ("template new", "denied") in told
    assert ("template submit", "done" if use else "denied") in told


def test_a_package_brings_a_pack_and_none_of_its_code_runs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "their_pack").mkdir(parents=True)
    (site / "their_pack" / "__init__.py").write_text("raise SystemExit('it ran')")
    (site / "their_pack" / "pack.yaml").write_text("kind: pack\nname: theirs\n")
    (site / "their_pack" / "t.yaml").write_text(template())
    info = site / "their_pack-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-pack\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[falcon_assets.packs]\nok = their_pack\nlost = no_such_package\n")
    monkeypatch.syspath_prepend(str(site))
    listed = call("list", "--filter", "pack=theirs")
    assert "theirs/nightly" in listed.stdout
    assert "there is no package 'no_such_package'" in listed.stderr
    assert "is submitted" in done("submit", "theirs/nightly", "-p", "name=raw")
    Path("x.yaml").write_text(template(2))
    assert "pack 'theirs' is installed" in refused("new", "theirs/nightly", "x.yaml", "--replace")


def test_a_template_to_begin_with_is_one(folder: Path) -> None:
    done("new", "ops/mine")
    given = ("-p", "name=raw", "-p", "cluster=primary", "-p", "start=2013-01-01T00:00Z")
    assert yaml.safe_load(done("render", "mine", *given))["name"] == "raw"
    assert "is submitted" in done("submit", "mine", *given)
    assert "is unchanged" in done("new", "ops/mine")
    assert "is not PACK/NAME" in refused("new", "ops")


def test_of_two_templates_of_one_name_it_has_to_be_said_which(folder: Path) -> None:
    done("new", "ops/mine")
    done("new", "other/mine")
    assert refused("show", "mine") == "there is ops/mine and other/mine: write which one"
    assert "other/mine version 1" in done("show", "other/mine")


def test_operations_are_in_the_python_api(folder: Path) -> None:
    from falcon_assets import api

    new(template())
    with api.open_installation() as opened:
        assert isinstance(opened, Installation)
        made = api.RenderTemplate(template="nightly", parameters={"name": "raw"}).run(opened)
    assert yaml.safe_load(made.definitions)["name"] == "raw"
