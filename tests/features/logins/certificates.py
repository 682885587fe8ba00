"""Authorities of certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """An authority of certificates, with what it has issued."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = _signed(subject, subject, key, key, x509.BasicConstraints(ca=True, path_length=None))
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(folder, name, key, certificate)

    @property
    def pem(self) -> str:
        return str(self.folder / f"{self.name}.pem")

    def issue(self, *names: str, unit: str = "staff", addresses: Sequence[str] = ()) -> tuple[str, str]:
        """Files with a certificate and its key, of ``localhost`` and of these addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)]
        subject = x509.Name([*parts, *(x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names)])
        machines = [x509.IPAddress(ip_address(one)) for one in addresses]
        known = [x509.DNSName("localhost"), x509.RFC822Name("ann@example.com"), *machines]
        alternative = x509.SubjectAlternativeName(known)
        certificate = _signed(subject, self.certificate.subject, key, self.key, alternative)
        files = [self.folder / f"{self.name}-{'-'.join(names)}.{end}" for end in ("crt", "key")]
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
        return str(files[0]), str(files[1])


def _signed(subject: x509.Name, issuer: x509.Name, key: Any, signing: Any, extension: Any) -> x509.Certificate:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).add_extension(extension, critical=False)
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    return made.sign(signing, hashes.SHA256())
