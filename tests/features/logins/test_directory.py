"""Logins by a real directory: OpenLDAP's slapd of Debian, over TLS."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.logins.certificates import Authority
from tests.features.logins.fronts import PASSWORD, Fronts
from tests.features.logins.fronts import fronts as fronts  # noqa: PLC0414 - a fixture
from tests.processes import free_port, listens
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
SLAPD = Path("/usr/sbin/slapd")
_CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
pidfile {folder}/pid
database mdb
suffix "dc=example,dc=com"
rootdn "cn=admin,dc=example,dc=com"
rootpw searching
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""
_ENTRIES = f"""
dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: uid=ann,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: Example
userPassword: {PASSWORD}

dn: uid=o\\2a(neil),ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: o*(neil)
cn: O Neil
sn: Neil
userPassword: {PASSWORD}

dn: cn=staff,dc=example,dc=com
objectClass: groupOfNames
cn: staff
member: uid=ann,ou=people,dc=example,dc=com
member: uid=o\\2a(neil),ou=people,dc=example,dc=com
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """How the directory is declared."""
    assert SLAPD.exists(), "install slapd: apt-get install slapd ldap-utils"
    folder, port = tmp_path_factory.mktemp("slapd"), free_port()
    authority = Authority.make(folder, "directory")
    certificate, key = authority.issue("localhost")
    (folder / "data").mkdir()
    config = folder / "slapd.conf"
    config.write_text(_CONFIG.format(certificate=certificate, key=key, folder=folder))
    url = f"ldaps://localhost:{port}"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([SLAPD, "-f", config, "-h", url, "-d", "0"], stdout=log, stderr=log)
        try:
            wait_until(lambda: listens(port), 60, what=str(folder / "log"))
            add = ["ldapadd", "-x", "-H", url, "-D", "cn=admin,dc=example,dc=com", "-w", "searching"]
            trusting = {"LDAPTLS_REQCERT": "never", "PATH": "/usr/bin:/bin"}  # it takes localhost for another name
            subprocess.run(add, input=_ENTRIES.encode(), check=True, env=trusting, capture_output=True)
            (folder / "password").write_text("searching\n")
            yield {
                "url": url,
                "authorities": authority.pem,
                "bind_dn": "cn=admin,dc=example,dc=com",
                "bind_password": {"file": str(folder / "password")},
                "users": {"base": "ou=people,dc=example,dc=com", "filter": "(uid={name})", "name": "uid"},
                "groups": {"base": "dc=example,dc=com", "filter": "(member={dn})", "name": "cn"},
            }
        finally:
            server.terminate()
            server.wait()


def test_users_of_a_directory_have_their_names_and_groups_there(fronts: Fronts, directory: dict[str, Any]) -> None:
    with fronts(ldap=directory) as front:
        assert front.login("ANN", PASSWORD).status_code == 303
        assert front.get().json() == ["ann", ["staff"], "ADMIN", "ldap"]
        strange = front.anew()
        assert strange.login("o*(neil)", PASSWORD).status_code == 303
        assert strange.get().json() == ["o*(neil)", ["staff"], "VIEWER", "ldap"]


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ann", ""),
        ("ann", "wrong"),
        ("eve", PASSWORD),
        ("*", PASSWORD),
        ("ann)(uid=*", PASSWORD),
        ("a*n", PASSWORD),
        ("ann)(|(objectClass=*)", PASSWORD),
        ("ann\x00", PASSWORD),
    ],
)
def test_strangers_and_injections_are_refused(
    fronts: Fronts, directory: dict[str, Any], name: str, password: str
) -> None:
    with fronts(ldap=directory) as front:
        refused = front.login(name, password)
        assert (refused.status_code, "the name or the password is wrong" in refused.text) == (403, True)
        assert front.audit()[-1][1:] == ("login", "denied")


@pytest.mark.parametrize("wrong", [{"authorities": None}, {"url": "ldaps://localhost:1"}], ids=["stranger", "away"])
def test_a_directory_that_cannot_be_trusted_or_reached_lets_nobody_in(
    fronts: Fronts, directory: dict[str, Any], wrong: dict[str, Any]
) -> None:
    with fronts(ldap={**directory, **wrong}) as front:
        refused = front.login("ann", PASSWORD)
        assert (refused.status_code, "the directory cannot be asked" in refused.text) == (503, True)
