"""Papers for TLS on 127.0.0.1: an authority, and one certificate for server and client alike."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Certificates:
    """Files in a folder, valid for a day."""

    def __init__(self, folder: Path) -> None:
        self.ca = folder / "ca.pem"
        self.cert = folder / "cert.pem"
        self.key = folder / "key.pem"
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        root = _builder("authority", "authority", ca_key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        leaf = (
            _builder("node", "authority", key.public_key())
            .add_extension(x509.SubjectAlternativeName([here]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        )
        for path, builder in ((self.ca, root), (self.cert, leaf)):
            signed = builder.sign(ca_key, hashes.SHA256())
            path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        self.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    @property
    def options(self) -> str:
        """As options of a guard's address."""
        return f"ca={self.ca}&cert={self.cert}&key={self.key}"


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
