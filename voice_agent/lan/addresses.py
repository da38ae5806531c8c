"""What this machine is called on the local network."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

import ifaddr

from voice_agent.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_ELSEWHERE = "198.51.100.1"
"""An address nobody has (RFC 5737): connecting a UDP socket to it sends nothing and asks the routing table."""


def machine_addresses() -> list[ipaddress.IPv4Address]:
    """IPv4 addresses other machines may reach, as the interfaces list them.

    IPv6 privacy addresses change every day, and a certificate for them would as well, so IPv6 is used only where `host`
    names such an address.
    """
    found = [
        ipaddress.IPv4Address(ip.ip)
        for adapter in ifaddr.get_adapters()
        for ip in adapter.ips
        if isinstance(ip.ip, str)
    ]
    return [address for address in dict.fromkeys(found) if not address.is_loopback and not address.is_link_local]


def route_address() -> ipaddress.IPv4Address | None:
    """The address packets to the rest of the world leave from; None without a default route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_ELSEWHERE, 9))
        except OSError:
            return None
        return ipaddress.IPv4Address(probe.getsockname()[0])


def choose(addresses: Iterable[ipaddress.IPv4Address], route: ipaddress.IPv4Address | None) -> ipaddress.IPv4Address:
    """The address phones of the same network can use. Raises ConfigError without any.

    The one packets leave from, unless that is public (a machine on the internet, a tunnel) and a private one exists.
    """
    known = [*([route] if route else []), *addresses]
    if not known:
        raise ConfigError("lan: this machine has no address on a network; connect it to one, or set host")
    return next((address for address in known if address.is_private), known[0])


def machine_names(hostname: str) -> list[str]:
    """The host name, and the same in .local, which phones find by multicast DNS. Empty for one that is no DNS name."""
    label = hostname.lower().partition(".")[0]
    if not _LABEL.fullmatch(label) or label == "localhost":
        return []
    whole = hostname.lower().rstrip(".")
    # Not the bare label if there is more: the whole name is what the network knows.
    return list(dict.fromkeys([whole if all(map(_LABEL.fullmatch, whole.split("."))) else label, f"{label}.local"]))
