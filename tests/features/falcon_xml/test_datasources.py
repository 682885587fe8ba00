"""What becomes of Falcon's datasources, and of imports and exports of feeds; passwords are in nothing that is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.falcon_xml.conversion import Imported, convert
from falcon_assets.features.falcon_xml.operations import ImportRefusedError, import_xml
from falcon_assets.model.reference import EnvironmentValue
from tests.features.falcon_xml.definitions import CLUSTER, FEED

SECRET = "hunter22"
TEXT = f"<credential type='password-text'><userName>pat</userName><passwordText>{SECRET}</passwordText></credential>"
FILE = """<credential type="password-file">
    <userName>pat</userName><passwordFile>hdfs://nn:8020/user/pat/shop.pw</passwordFile></credential>"""
ALIAS = """<credential type="password-alias"><userName>pat</userName>
    <passwordAlias><alias>shop.pw</alias><providerPath>hdfs://nn/x.jceks</providerPath></passwordAlias></credential>"""
READ, WRITE = "jdbc:postgresql://replica:5432/shop", "jdbc:postgresql://main/shop"
XML = """<datasource name="shop-db" colo="east" type="{type}" description="orders" xmlns="uri:falcon:datasource:0.1">
    <tags>owner=sales@example.com, team=sales</tags>
    <interfaces>
        <!-- the replica -->
        <interface type="readonly" endpoint="{read}">{readonly}</interface>
        <interface type="write" endpoint="{write}">{writing}</interface>
        {common}
    </interfaces>
    <driver><clazz>org.postgresql.Driver</clazz><jar>/lib/postgresql.jar</jar></driver>
    <ACL owner="sales" group="data" permission="0750"/>
</datasource>"""


def xml(type: str = "postgres", read: str = READ, write: str = WRITE, **credentials: str) -> str:
    said = {"readonly": "", "writing": "", "common": "", **credentials}
    return XML.format(type=type, read=read, write=write, **said)


def imported(text: str) -> Imported:
    found = convert(text.encode(), "x.xml")
    assert isinstance(found, Imported)
    assert SECRET not in found.text().text + "".join(str(one) for one in found.found.warnings)
    return found


def data(text: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(imported(text).text().text, yaml.BaseLoader)
    return read


def told(text: str, word: str) -> list[str]:
    return [one.message for one in imported(text).found.warnings if word in one.name]


def test_a_datasource() -> None:
    login = {"user": "pat", "password": {"env": "SHOP_DB_PASSWORD"}}
    assert data(xml(common=TEXT)) == {
        "kind": "datasource",
        "name": "shop-db",
        "colo": "east",
        "description": "orders",
        "tags": {"owner": "sales@example.com", "team": "sales"},
        "type": "postgresql",
        "interfaces": {
            "readonly": {"endpoint": "postgresql://replica:5432/shop", "credential": login},
            "write": {"endpoint": "postgresql://main/shop", "credential": login},
        },
        "acl": {"owner": "sales", "group": "data", "permission": "0750"},
    }
    text = imported(xml(common=TEXT)).text().text
    assert "# the replica" in text and "/lib/postgresql.jar" in text
    (driver,) = told(xml(common=TEXT), "driver")
    assert driver == "drivers are Python packages here: see the guide Datasources (with clazz, jar)"


HOW = {
    "text": (TEXT, "a password in plain text is not imported, and should be removed from the XML"),
    "file": (FILE, "the password was in the file /user/pat/shop.pw of HDFS"),
    "alias": (ALIAS, "the password was in Hadoop's credential store, as shop.pw of hdfs://nn/x.jceks"),
}


@pytest.mark.parametrize(("credential", "how"), HOW.values(), ids=HOW)
def test_a_password_is_a_variable_to_be_set(credential: str, how: str) -> None:
    text = xml(readonly=credential)
    assert data(text)["interfaces"]["readonly"]["credential"]["password"] == {"env": "SHOP_DB_PASSWORD"}
    assert told(text, "credential/password") == [f"{how}: set SHOP_DB_PASSWORD here and wherever Dagster runs"]


def test_each_interface_has_its_own_credential_else_that_of_all() -> None:
    other = TEXT.replace("pat", "ann")
    interfaces = data(xml(readonly=other, common=TEXT))["interfaces"]
    assert interfaces["readonly"]["credential"] == {"user": "ann", "password": {"env": "SHOP_DB_READONLY_PASSWORD"}}
    assert interfaces["write"]["credential"] == {"user": "pat", "password": {"env": "SHOP_DB_PASSWORD"}}
    interfaces = data(xml(readonly=TEXT, writing=TEXT))["interfaces"]
    assert interfaces["readonly"]["credential"] == interfaces["write"]["credential"]


def test_what_else_is_in_a_credential_is_named_and_kept_nowhere() -> None:
    strange = TEXT.replace("</credential>", f"<pasword hint='{SECRET}'>{SECRET}</pasword></credential>")
    for text in (xml(common=strange), xml(common=strange).replace('type="write"', 'type="writ"')):
        assert any("kept nowhere" in one for one in told(text, "pasword"))
    text = xml(writing=strange).replace('type="write"', 'type="writ"')
    assert "pasword" in imported(text).text().text  # with stars


@pytest.mark.parametrize("comment", [f"<!-- it was {SECRET} -->", "<!-- the old password: hunter1 -->"])
def test_comments_that_may_hold_a_password_are_left_out(comment: str) -> None:
    text = xml(common=comment + TEXT)
    assert "hunter" not in imported(text).text().text
    assert told(text, "credential")[0] == "a comment that may hold a password is left out"


def test_parameters_and_passwords_of_endpoints_are_left_out() -> None:
    text = xml("mysql", f"jdbc:mysql://h:3306/shop?user=pat&amp;password={SECRET}&amp;useSSL=true", common=TEXT)
    assert data(text)["interfaces"]["readonly"] == {
        "endpoint": "mysql://h:3306/shop",
        "credential": {"user": "pat", "password": {"env": "SHOP_DB_PASSWORD"}},
    }
    assert told(text, "readonly") == []
    assert told(text, "endpoint") == [
        "parameters of JDBC are left out (user, password, useSSL): see driver, and credential"
    ]
    assert SECRET not in data(xml(read=f"jdbc:postgresql://pat:{SECRET}@h/shop"))["interfaces"]["readonly"]["endpoint"]


@pytest.mark.parametrize("kind", ["oracle", "hsql", "db2", "netezza", "teradata", "generic", ""])
def test_other_types_are_not_supported(kind: str) -> None:
    found = convert(xml(kind, common=TEXT).encode(), "x.xml")
    assert isinstance(found, tuple)
    (said,) = found
    assert (said.line, said.name) == (1, "datasource/@type")
    rule = "are not supported, only those of mysql and postgres: left out"
    assert said.message == f"datasources of type {kind!r} {rule}"


IMPORT = """<import><source name="shop-db" tableName="orders">
    <extract type="full"><mergepolicy>snapshot</mergepolicy></extract>
    <fields><includes><field>id</field><field>total</field></includes></fields></source>
    <arguments><argument name="--split-by" value="id"/><argument name="--num-mappers" value="2"/>
    <argument name="--direct" value=""/></arguments></import>"""
EXPORT = """<export><target name="shop-db" tableName="sums"><load type="updateonly"/>
    <fields><excludes><field>note</field></excludes></fields></target>
    <arguments><argument name="--update-key" value="id, day"/></arguments></export>"""


def of_feed(transfer: str) -> str:
    head, _, rest = FEED.partition("<import>")
    return head + transfer + rest.partition("</import>")[2]


def test_an_import_of_a_feed() -> None:
    text = of_feed(IMPORT)
    assert data(text)["clusters"][0]["import"] == {
        "source": {"name": "shop-db", "table": "orders"},
        "extract": "full",
        "merge": "snapshot",
        "fields": {"include": ["id", "total"]},
        "partition_by": "id",
        "parallel": "2",
    }
    assert told(text, "arguments/argument")[0].startswith("it was for Sqoop, which does not run here")
    changes = text.replace('type="full"', 'type="incremental"').replace(
        "<mergepolicy>snapshot", "<deltacolumn>changed</deltacolumn><mergepolicy>append"
    )
    declared = data(changes)["clusters"][0]["import"]
    assert (declared["extract"], declared["merge"]) == ({"incremental": {"column": "changed"}}, "append")


def test_an_export_of_a_feed() -> None:
    text = of_feed(EXPORT)
    assert data(text)["clusters"][0]["export"] == {
        "target": {"name": "shop-db", "table": "sums"},
        "load": {"upsert": {"key": ["id", "day"]}},
        "fields": {"exclude": ["note"]},
    }
    assert told(text, "load") == ["'updateonly' is an upsert here: rows that are not there are added"]
    plain = of_feed(EXPORT.replace("updateonly", "allowinsert").replace("--update-key", "--batch"))
    assert data(plain)["clusters"][0]["export"]["load"] == "insert"


def files(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.xml").write_text(text)
    return folder


def test_files_are_imported_together(tmp_path: Path) -> None:
    folder = files(tmp_path / "xml", cluster=CLUSTER, shop=xml(common=TEXT), feed=of_feed(IMPORT))
    result = import_xml([folder], tmp_path / "defs")
    assert result.problems == ()
    store = load_entities(tmp_path / "defs")
    credential = store.datasource("shop-db").credential(write=True)
    assert credential.password == EnvironmentValue(env="SHOP_DB_PASSWORD")
    assert [one.datasource for one in store.imports] == ["shop-db"]
    written = [path.read_text() for path in (tmp_path / "defs").rglob("*.yaml")]
    assert len(written) == 3 and SECRET not in "".join(written) + str(result)


def test_imports_of_what_is_not_supported_are_left_out(tmp_path: Path) -> None:
    folder = files(tmp_path / "xml", cluster=CLUSTER, shop=xml("oracle", common=TEXT), feed=of_feed(IMPORT))
    result = import_xml([folder], tmp_path / "defs")
    said = [f"{one.name}: {one.message}" for one in result.warnings]
    assert any("datasources of type 'oracle' are not supported" in one for one in said)
    assert any("unknown datasource 'shop-db'" in one and "is left out" in one for one in said)
    assert (result.problems, load_entities(tmp_path / "defs").imports) == ((), ())
    (feed,) = (tmp_path / "defs" / "feeds").glob("*.yaml")
    assert "orders" in feed.read_text()  # in a comment


def test_only_unsupported_ones(tmp_path: Path) -> None:
    folder = files(tmp_path / "xml", shop=xml("oracle", common=TEXT))
    with pytest.raises(ImportRefusedError) as found:
        import_xml([folder], tmp_path / "defs")
    assert "datasources of type 'oracle' are not supported" in str(found.value) and SECRET not in str(found.value)
