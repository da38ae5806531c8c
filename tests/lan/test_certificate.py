"""The kept certificate: what it names, when it is reused, who may read it; and a real TLS handshake with it."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from voice_agent.errors import ConfigError
from voice_agent.lan import certificate
from voice_agent.lan.addresses import Address
from voice_agent.lan.certificate import RENEW, VALID, own_certificate, state_folder

NOW = certificate.now()
HOME: list[Address] = [ipaddress.ip_address("192.168.1.5")]
NAMES = ["desk", "desk.local"]


def test_it_names_what_it_is_for_and_its_key_is_private(tmp_path: Path) -> None:
    made = own_certificate(tmp_path / "state", NAMES, [*HOME, ipaddress.ip_address("fd00::2")], NOW)
    assert made.is_new
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.file.parent.stat().st_mode) == 0o700
    assert os.listdir(made.file.parent) == [made.file.name]
    parsed = x509.load_pem_x509_certificate(made.file.read_bytes())
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == NAMES
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["192.168.1.5", "fd00::2"]
    assert parsed.not_valid_after_utc - parsed.not_valid_before_utc <= timedelta(days=398)
    assert made.fingerprint.count(":") == 31


def test_it_is_reused_until_it_nears_its_end(tmp_path: Path) -> None:
    first = own_certificate(tmp_path, NAMES, HOME, NOW)
    last = NOW + VALID - RENEW - timedelta(days=2)
    again = own_certificate(tmp_path, NAMES, HOME, last)
    assert (again.is_new, again.fingerprint) == (False, first.fingerprint)
    later = own_certificate(tmp_path, NAMES, HOME, last + timedelta(days=2))
    assert later.is_new
    assert later.fingerprint != first.fingerprint


def test_another_address_or_name_needs_another_certificate_fewer_do_not(tmp_path: Path) -> None:
    first = own_certificate(tmp_path, NAMES, HOME, NOW)
    assert not own_certificate(tmp_path, NAMES[:1], HOME, NOW).is_new
    moved = own_certificate(tmp_path, NAMES, [ipaddress.ip_address("10.0.0.7")], NOW)
    assert moved.is_new
    assert own_certificate(tmp_path, ["sofa"], [ipaddress.ip_address("10.0.0.7")], NOW).is_new
    assert first.fingerprint != moved.fingerprint


def test_a_clock_that_was_wrong_or_a_damaged_file_makes_a_new_one(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, NAMES, HOME, NOW)
    assert own_certificate(tmp_path, NAMES, HOME, NOW - timedelta(days=30)).is_new
    content = made.file.read_bytes()
    foreign = own_certificate(tmp_path / "other", NAMES, HOME, NOW).file.read_bytes()
    key, marker, _ = content.partition(b"-----BEGIN CERTIFICATE")
    mixed = key + marker + foreign.partition(marker)[2]
    for damaged in (b"", content[:200], b"\xff" * 100, mixed):
        made.file.write_bytes(damaged)
        assert own_certificate(tmp_path, NAMES, HOME, NOW).is_new


def test_a_kept_key_that_others_could_read_is_closed_again(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, NAMES, HOME, NOW)
    made.file.chmod(0o644)
    assert not own_certificate(tmp_path, NAMES, HOME, NOW).is_new
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="XDG_STATE_HOME"):
        own_certificate(tmp_path / "file", NAMES, HOME, NOW)


def test_the_folder_follows_the_xdg_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "voice-agent"
    monkeypatch.setenv("HOME", str(tmp_path))
    for odd in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", odd)
        assert state_folder() == tmp_path / ".local/state/voice-agent"


@pytest.mark.parametrize("name", ["192.168.1.5", "desk.local"])
def test_a_client_that_trusts_it_completes_a_strict_handshake(tmp_path: Path, name: str) -> None:
    made = own_certificate(tmp_path, NAMES, HOME, NOW)
    trusting = ssl.create_default_context(
        cadata=made.file.read_text().partition("KEY-----\n")[2].partition("KEY-----\n")[2]
    )
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs, made.context().wrap_socket(theirs, server_side=True) as secured:
            secured.sendall(b"hello")

    server = threading.Thread(target=answer)
    server.start()
    with ours, trusting.wrap_socket(ours, server_hostname=name) as secured:
        assert secured.recv(5) == b"hello"
        assert secured.version() in ("TLSv1.2", "TLSv1.3")
    server.join()
