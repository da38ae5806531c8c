"""Is the other side still there? Pure."""

from __future__ import annotations

from dataclasses import dataclass

GRACE = 0.25
"""Seconds that sockets are read again after the program itself was late to look."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """The limits of one call, in seconds."""

    connect_timeout: float
    dead_after: float

    def deadline(self, *, answered: float, connected: bool, last_packet: float) -> float:
        """When the peer counts as gone if nothing more happens."""
        return last_packet + self.dead_after if connected else answered + self.connect_timeout

    def verdict(self, now: float, *, answered: float, connected: bool, last_packet: float) -> str | None:
        """Why the call is over, or None."""
        if now < self.deadline(answered=answered, connected=connected, last_packet=last_packet):
            return None
        return "peer is gone" if connected else "peer did not connect"


def next_look(now: float, deadline: float, *, planned: float, interval: float) -> float:
    """When to look next. If this look came much later than planned, the program was busy and packets may wait unread
    in the sockets: then a little time is left to read them before anybody is declared gone."""
    if now - planned > GRACE and deadline <= now:
        return now + GRACE
    return min(max(deadline, now), now + interval)
