"""Certificates of clients (mutual TLS); the server has checked them against the authorities when one comes here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.x509.oid import NameOID
from starlette.types import Scope

from falcon_assets.features.logins.identity import Identity, LoginRefusedError, identity
from falcon_assets.model.base import Declaration, NonEmpty


class CertificatesWay(Declaration):
    """Whose certificates count, and where the name is in them."""

    authorities: NonEmpty
    """PEM file with the authorities that issue certificates of users, absolute: no others count."""
    name: Literal["common_name", "email", "dns", "uri"] = "common_name"
    """The part with the name: of the subject, or of its alternative names."""
    groups: Literal["organizational_unit"] | None = None
    """The part with the groups; default: certificates have none."""

    @property
    def file(self) -> Path:
        return Path(self.authorities)


_ALTERNATIVES: dict[str, type[x509.RFC822Name | x509.DNSName | x509.UniformResourceIdentifier]] = {
    "email": x509.RFC822Name,
    "dns": x509.DNSName,
    "uri": x509.UniformResourceIdentifier,
}


def named_by_certificate(scope: Scope, way: CertificatesWay) -> Identity | None:
    """The user of the client's certificate; None: there is none.

    It is where ASGI's TLS extension has it. Raises LoginRefusedError where it does not say one name.
    """
    chain = scope.get("extensions", {}).get("tls", {}).get("client_cert_chain", ())
    if not chain:
        return None
    certificate = x509.load_pem_x509_certificate(chain[0].encode())
    names = _names(certificate, way.name)
    if len(names) != 1:
        raise LoginRefusedError(f"the certificate has {len(names)} values of {way.name}, and must have one")
    units = _of_subject(certificate, NameOID.ORGANIZATIONAL_UNIT_NAME) if way.groups else []
    return identity(names[0], units, "certificate")


def _names(certificate: x509.Certificate, part: str) -> list[str]:
    if part == "common_name":
        return _of_subject(certificate, NameOID.COMMON_NAME)
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return list(found.get_values_for_type(_ALTERNATIVES[part]))


def _of_subject(certificate: x509.Certificate, key: x509.ObjectIdentifier) -> list[str]:
    return [str(one.value) for one in certificate.subject.get_attributes_for_oid(key)]
