"""A self-signed certificate for this machine's own addresses and names, kept and reused.

Browsers give a page the microphone only over HTTPS, and nobody issues certificates for 192.168.x.y. A phone warns once
about this one; the fingerprint lets a careful person compare.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from voice_agent.errors import ConfigError
from voice_agent.lan.addresses import Address

VALID = timedelta(days=397)
"""iOS refuses server certificates that live longer than 398 days."""
RENEW = timedelta(days=14)
"""A certificate this close to its end is replaced at start: the agent may then run for weeks."""


@dataclass(frozen=True, slots=True)
class Certificate:
    file: Path
    """PEM with the private key and the certificate: one file, so that they always belong together."""
    fingerprint: str
    """SHA-256 as browsers show it: AA:BB:…"""
    is_new: bool

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.file)
        return context


def state_folder() -> Path:
    """$XDG_STATE_HOME/voice-agent, or ~/.local/state/voice-agent."""
    # The XDG specification says to ignore a relative path there.
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "voice-agent"


def own_certificate(folder: Path, names: Sequence[str], addresses: Sequence[Address], now: datetime) -> Certificate:
    """The kept certificate if it names all of these and is still good, else a new one.

    Raises ConfigError if it cannot be written.
    """
    file = folder / "lan.pem"
    kept = _kept(file)
    if kept is not None and _serves(kept, names, addresses, now):
        with contextlib.suppress(OSError):  # somebody else's file; it was readable, and that is all we need
            file.chmod(0o600)
        return Certificate(file, fingerprint(kept), is_new=False)
    key = ec.generate_private_key(ec.SECP256R1())
    made = _sign(key, names, addresses, now)
    try:
        _write(file, _pem(key, made))
    except OSError as error:
        raise ConfigError(
            f"lan: the certificate cannot be kept in {folder} ({error.strerror or error}); "
            "set XDG_STATE_HOME to a folder that can be written"
        ) from error
    return Certificate(file, fingerprint(made), is_new=True)


def fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def _kept(file: Path) -> x509.Certificate | None:
    """The certificate in the file, if its key fits."""
    try:
        content = file.read_bytes()
        certificate = x509.load_pem_x509_certificate(content)
        key = serialization.load_pem_private_key(content, None)
    except (OSError, ValueError, TypeError):
        return None
    return certificate if key.public_key() == certificate.public_key() else None


def _serves(certificate: x509.Certificate, names: Sequence[str], addresses: Sequence[Address], now: datetime) -> bool:
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEW:
        return False
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    known_names = set(extension.get_values_for_type(x509.DNSName))
    known_addresses = set(extension.get_values_for_type(x509.IPAddress))
    return known_names.issuperset(names) and known_addresses.issuperset(addresses)


def _sign(
    key: ec.EllipticCurvePrivateKey, names: Sequence[str], addresses: Sequence[Address], now: datetime
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "voice-agent")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
    alternatives += [x509.IPAddress(ipaddress.ip_address(str(address).partition("%")[0])) for address in addresses]
    public = key.public_key()
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        # A phone's clock may be a little behind.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now - timedelta(days=1) + VALID)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


def _pem(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> bytes:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def _write(file: Path, content: bytes) -> None:
    """All of it or nothing, and never readable by others, not even for a moment."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".lan-")  # 0600
    try:
        with os.fdopen(descriptor, "wb") as temporary:
            temporary.write(content)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def now() -> datetime:
    return datetime.now(UTC)
