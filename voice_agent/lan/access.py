"""`serve --lan`: HTTPS on this machine's network address, and links that let phones in."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import segno

from voice_agent.config import is_loopback
from voice_agent.errors import ConfigError
from voice_agent.lan.addresses import Address, choose, machine_addresses, machine_names, route_address
from voice_agent.lan.certificate import Certificate, now, own_certificate, state_folder
from voice_agent.server.joining import Devices, Entrance
from voice_agent.settings import ServerSettings

_LOOPBACK: tuple[Address, ...] = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))


class LanAccess:
    """Everything --lan adds to a server. Made before anything listens; `opened` prints the first link."""

    def __init__(
        self, settings: ServerSettings, folder: Path | None = None, show: Callable[[str], None] | None = None
    ) -> None:
        """`folder` keeps the certificate; `show` gets each text for the terminal. Raises ConfigError."""
        self._show = show or _print
        address, names, addresses = _identity(settings.host)
        self.address = address
        """Where phones reach the agent."""
        bind = str(address) if settings.host == ServerSettings().host else settings.host
        self.settings = replace(settings, host=bind)
        """With the host to listen on."""
        self.certificate: Certificate = own_certificate(folder or state_folder(), names, addresses, now())
        self.devices = Devices(self._invited)
        self.entrance = Entrance(frozenset([*names, *(_in_url(one) for one in addresses)]), self.devices)
        self._port = settings.port
        self._first = True

    def context(self) -> ssl.SSLContext:
        return self.certificate.context()

    def opened(self, port: int) -> None:
        """The server listens on this port: show the address and the first link."""
        self._port = port
        self.devices.invite()

    def link(self, key: str) -> str:
        return f"https://{_in_url(self.address)}:{self._port}/#join={key}"

    def _invited(self, key: str) -> None:
        link = self.link(key)
        head = "\nscan to join from a phone on this network" if self._first else "\nthe next link, for another device"
        lines = [f"{head} (works once):\n", qr_text(link), f"  {link}\n"]
        if self._first:
            lines.append(
                "The phone warns that it does not know the certificate, since no authority can vouch for a private\n"
                f"address. Its SHA-256 fingerprint, to compare: {self.certificate.fingerprint}\n"
                f"A new link whenever you need one: kill -USR1 {os.getpid()}\n"
            )
        self._first = False
        self._show("\n".join(lines))


def _print(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more; a device that joins must not suffer for it
        print(text, flush=True)


def qr_text(link: str) -> str:
    """The QR code in half blocks, two rows of modules a line, dark on light whatever the terminal's colours are."""
    matrix = [[bool(module) for module in row] for row in segno.make_qr(link, error="m").matrix_iter(border=2)]
    if len(matrix) % 2:
        matrix.append([False] * len(matrix[0]))
    blocks = {(False, False): "█", (False, True): "▀", (True, False): "▄", (True, True): " "}
    lines = [
        "".join(blocks[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(matrix[::2], matrix[1::2], strict=True)
    ]
    # Light is drawn, in bright white on black, for terminals with a light background too.
    return "\n".join(f"  \x1b[97;40m{line}\x1b[0m" for line in lines) + "\n"


def _identity(host: str) -> tuple[Address, list[str], list[Address]]:
    """Where phones reach us, and all names and addresses the certificate is for and Host may carry."""
    names = machine_names(socket.gethostname())
    if host == ServerSettings().host:
        chosen = choose(machine_addresses(), route_address())
        return chosen, names, [chosen]
    try:
        given = ipaddress.ip_address(host.strip("[]"))
    except ValueError as error:
        if is_loopback(host):  # localhost
            return _LOOPBACK[0], ["localhost"], list(_LOOPBACK)
        raise ConfigError(
            f"lan: host must be an address of this machine, not the name {host}; or leave it out"
        ) from error
    if given.is_unspecified:
        chosen = choose(machine_addresses(), route_address())
        return chosen, [*names, "localhost"], [*dict.fromkeys([chosen, *machine_addresses()]), *_LOOPBACK]
    return given, names if not given.is_loopback else ["localhost"], [given]


def _in_url(address: Address) -> str:
    return f"[{address.compressed}]" if address.version == 6 else str(address)
