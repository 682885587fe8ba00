"""Conversion of Falcon's datasources: types, endpoints of JDBC, and credentials, whose secrets are not imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from falcon_assets.base.texts import without_credentials
from falcon_assets.features.falcon_xml.elements import Element
from falcon_assets.features.falcon_xml.rules import Conversion, Found
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, Value

TYPES: Mapping[str, str] = {"mysql": "mysql", "postgres": "postgresql"}
"""Type of Falcon -> its counterpart."""
_JDBC = "jdbc:"
_SECRETS = ("passwordText", "passwordFile", "passwordAlias")
_ALIAS = ("alias", "providerPath")
_COMMON = "credential"
_UNKNOWN = "Apache Falcon has no such thing in a credential, or allows only one: it is left out, and kept nowhere"
_TELLING = re.compile(r"pass(?:word|wd|phrase)|pwd|secret", re.IGNORECASE)
_WHERE = "here and wherever Dagster runs"


def datasource_type(found: Found, conversion: Conversion) -> Value | None:
    return TYPES.get(found.text)


def endpoint(found: Found, conversion: Conversion) -> Value | None:
    """Converts ``jdbc:mysql://host/db?x=y``: parameters of JDBC have no counterpart."""
    url, _, parameters = found.text.removeprefix(_JDBC).partition("?")
    if parameters:
        names = ", ".join(dict.fromkeys(one.partition("=")[0] for one in re.split("[&;]", parameters) if one))
        conversion.warn(
            found.line, found.name, f"parameters of JDBC are left out ({names}): see driver, and credential"
        )
    return without_credentials(url) or None


def credential(found: Found, conversion: Conversion) -> Value | None:
    """Converts a user, and a password, which a variable has here; what else is there may be a secret: only named."""
    made: Keys = {}
    used: list[Element] = [found.element]
    if user := _first(found.element, "userName"):
        used.append(user)
        made["user"] = Node(user.text.strip(), user.line, user.claim_comments())
    secret = next(filter(None, (_first(found.element, name) for name in _SECRETS)), None)
    if secret is not None:
        used += [secret, *filter(None, (_first(secret, name) for name in _ALIAS))]
        variable: Keys = {"env": Node(_variable(found), secret.line)}
        made["password"] = Node(variable, secret.line)
        how = f"{_how(secret)}: set {_variable(found)} {_WHERE}"
        conversion.warn(secret.line, f"{found.name}/{secret.name}", how)
    _name_others(found, used, conversion)
    return made or None


def common_credential(found: Found, conversion: Conversion) -> Value | None:
    """Converts the credential of all interfaces, for :func:`settle_datasource`."""
    made = credential(found, conversion)
    return None if made is None else {_COMMON: Node(made, found.line)}


def _name_others(found: Found, used: list[Element], conversion: Conversion) -> None:
    for element in found.element.all():
        is_used = any(element is one for one in used)
        if not is_used:
            conversion.warn(element.line, f"{found.name}/{element.name}", _UNKNOWN)
        for attribute in element.attributes:
            if not (element is found.element and attribute.name == "type"):
                conversion.warn(attribute.line, f"{found.name}/{element.name}/@{attribute.name}", _UNKNOWN)
            attribute.taken = True
        element.taken = element.text_taken = True


def settle_datasource(keys: Keys) -> None:
    """The credential of all interfaces is written to those that have none."""
    interfaces = keys["interfaces"].value if "interfaces" in keys else {}
    if isinstance(interfaces, dict) and (common := interfaces.pop(_COMMON, None)):
        for one in interfaces.values():
            if isinstance(one.value, dict):
                one.value.setdefault("credential", common)


def without_secret_comments(root: Element, conversion: Conversion) -> None:
    """Removes comments that may hold a password: comments are written into the YAML."""
    secrets = {one.text.strip() for one in root.all() if one.name in _SECRETS} - {""}
    for element in root.all():
        for comments in (element.comments, element.last_comments):
            for comment in [*comments]:
                if _TELLING.search(comment) or any(secret in comment for secret in secrets):
                    comments.remove(comment)
                    conversion.warn(element.line, element.name, "a comment that may hold a password is left out")


def _first(element: Element, name: str) -> Element | None:
    return next(iter(element.named(name)), None)


def _variable(found: Found) -> str:
    """One variable for all interfaces, unless they have different users or passwords."""
    root, interface = found.parents[0], found.parents[-1].attribute("type")
    known = {_said(one) for one in root.all() if one.name == "credential"}
    said = root.attribute("name")
    part = interface.value.strip() if interface and len(known) > 1 else ""
    words = (one.upper() for one in (said.value if said else "", part, "password") if one)
    return re.sub(r"[^A-Z0-9]+", "_", "_".join(words)).strip("_")


def _said(one: Element) -> tuple[str, ...]:
    return tuple(f"{inner.name}={inner.text.strip()}" for inner in one.all())


def _how(secret: Element) -> str:
    if secret.name == "passwordText":
        return "a password in plain text is not imported, and should be removed from the XML"
    if secret.name == "passwordFile":
        return f"the password was in the file {urlsplit(secret.text.strip()).path or '?'} of HDFS"
    said = " of ".join(one.text.strip() for name in _ALIAS if (one := _first(secret, name)))
    return f"the password was in Hadoop's credential store, as {said or '?'}"
