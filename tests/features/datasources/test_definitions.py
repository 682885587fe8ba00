"""What ``falcon validate`` says of datasources, imports and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.features.datasources.types.postgresql import PostgresqlDatasource
from tests.builders import cluster_yaml, datasource_yaml, feed_yaml, on, process_yaml

READ = {"source": {"name": "shop", "table": "orders"}}
SEND = {"target": {"name": "shop", "table": "sums"}, "partition": "hour"}
READ_ONLY = {"readonly": {"endpoint": "postgresql://h/shop"}}
SFTP = {"type": "sftp", "interfaces": {"readonly": {"endpoint": "sftp://h/x"}}}


def said(root: Path, text: str) -> list[str]:
    """What is wrong, without the place of the file."""
    root.mkdir(exist_ok=True)
    (root / "a.yaml").write_text(cluster_yaml() + cluster_yaml("backup") + text)
    (root / "a.sql").write_text("SELECT 1")
    try:
        found = load_entities(root).warnings
    except InvalidDefinitionsError as error:
        found = tuple(error.problems)
    return [f"{one.key_path}: {one.message}" for one in found]


def imported(*clusters: dict[str, Any], **overrides: Any) -> str:
    return feed_yaml("orders", *(clusters or (on("primary", **{"import": READ}),)), **overrides)


def read(**source: str) -> str:
    return imported(on("primary", **{"import": {"source": {"name": "shop", **source}}}))


def sent(*exports: dict[str, Any], **declared: Any) -> str:
    return feed_yaml("sums", on("primary", export=list(exports) or {**SEND, **declared}))


BY_KEY = sent(load={"upsert": {"key": ["id"]}})
DATASOURCES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "well": ({"driver": {"sslmode": "require", "sslpassword": {"env": "X"}}}, []),
    "a type that is not there": ({"type": "postgres"}, ["type: unknown type 'postgres' (did you mean 'postgresql'?)"]),
    "an endpoint of another form": (
        {"interfaces": {**READ_ONLY, "write": {"endpoint": "mysql://h/shop"}}},
        ["interfaces.write.endpoint: is not of the form postgresql://HOST:PORT/DATABASE"],
    ),
    "no interface": ({"interfaces": {}}, ["interfaces: needs readonly, write, or both"]),
    "an unknown option": (
        {"driver": {"sslmod": "require"}},
        ["driver.sslmod: unknown option 'sslmod' (did you mean 'sslmode'?)"],
    ),
    "a secret as an option": (
        {"driver": {"sslpassword": "hunter22"}},
        [
            "driver.sslpassword: must be {env: NAME}, {file: PATH} or {encrypted: ...}: secrets do not stand in "
            "definitions"
        ],
    ),
}


@pytest.mark.parametrize(("declared", "problems"), DATASOURCES.values(), ids=DATASOURCES)
def test_datasources(tmp_path: Path, declared: dict[str, Any], problems: list[str]) -> None:
    assert said(tmp_path, datasource_yaml(**declared)) == problems


FEEDS: dict[str, tuple[str, list[str]]] = {
    "well": (datasource_yaml() + imported() + sent(), []),
    "no such datasource": (
        datasource_yaml("shops") + imported() + sent({**SEND, "target": {"name": "lake", "table": "x"}}),
        [
            "clusters[0].import.source.name: unknown datasource 'shop' (did you mean 'shops'?)",
            "clusters[0].export[0].target.name: unknown datasource 'lake'; legal here: shops",
        ],
    ),
    "a datasource with problems of its own": (datasource_yaml(colour="blue") + imported(), ["colour"]),
    "what its type cannot read": (
        datasource_yaml() + read(path="/x"),
        ["clusters[0].import.source.path: a datasource of type 'postgresql' is not read by path; legal: table, query"],
    ),
    "what its type cannot write": (
        datasource_yaml(**SFTP) + sent(),
        [
            "clusters[0].export: a datasource of type 'sftp' cannot be a target",
            "clusters[0].export.target.name: datasource 'shop' has no interfaces.write: nothing can be written there",
        ],
    ),
    "no interface to write": (
        datasource_yaml(interfaces=READ_ONLY) + sent(),
        ["clusters[0].export.target.name: datasource 'shop' has no interfaces.write: nothing can be written there"],
    ),
    "no partition": (
        datasource_yaml() + sent({"target": SEND["target"], "load": "replace_partition"}),
        [
            "clusters[0].export[0].load: load: replace_partition needs partition: the column of the table that has the "
            "nominal time of the instance"
        ],
    ),
    "a partition that nobody needs": (
        datasource_yaml() + sent(load="replace"),
        ["clusters[0].export.partition: with load: replace the table has no other instances to tell apart"],
    ),
    "two feeds for one table": (
        datasource_yaml() + sent() + sent().replace("name: sums", "name: others").replace("/sums/", "/others/"),
        ["clusters[0].export.target.table: table 'sums' of 'shop' is the target of feed 'sums' already ("],
    ),
    "two feeds for one table, by key": (
        datasource_yaml() + BY_KEY + BY_KEY.replace("name: sums", "name: others").replace("/sums/", "/others/"),
        [],
    ),
    "two exports to one": (
        datasource_yaml() + sent(SEND, {**SEND, "target": {"name": "shop", "table": "other"}}),
        ["clusters[0].export[1].target.name: datasource 'shop' is a target already in line "],
    ),
    "a process makes it": (
        datasource_yaml() + imported() + process_yaml("make", None, "orders"),
        [
            "outputs[0].feed: feed 'orders' on cluster 'primary' is imported from datasource 'shop', so no process can "
            "produce it there"
        ],
    ),
    "replication makes it": (
        datasource_yaml() + imported(on("backup", type="source"), on("primary", type="target", **{"import": READ})),
        [
            "clusters[1].import: replication makes the instances here (type: target): leave one of them out",
        ],
    ),
    "it is a roll-up": (
        datasource_yaml() + feed_yaml("part") + imported(rollup={"of": ["part"]}),
        [
            "locations: a roll-up has no data of its own",
            "clusters[0].import: a roll-up is made of its members: import those",
        ],
    ),
}


@pytest.mark.parametrize(("text", "problems"), FEEDS.values(), ids=FEEDS)
def test_imports_and_exports(tmp_path: Path, text: str, problems: list[str]) -> None:
    found = said(tmp_path, text)
    assert [one.startswith(wanted) for one, wanted in zip(found, problems, strict=True)] == [True] * len(found), found


def test_a_driver_that_is_not_installed_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresqlDatasource, "module", "no_such_module")
    monkeypatch.setattr(PostgresqlDatasource, "package", "falcon-assets[postgresql]")
    assert said(tmp_path, datasource_yaml()) == [
        "type: its driver is not installed here: pip install 'falcon-assets[postgresql]'"
    ]


@pytest.mark.parametrize("name", datasource_types())
def test_each_type_says_its_own_form(name: str) -> None:
    known = datasource_types()[name]
    assert known.endpoint_problem("") is not None
    assert known.endpoint_problem("nothing://of/this?form") is not None
    assert known.endpoint.split("://")[0] in str(known.endpoint_problem("nothing://of/this"))
