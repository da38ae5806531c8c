"""How a device of the local network gets in: a one-time key from a link is exchanged for a cookie.

The key is in the link's fragment, which browsers keep to themselves: it is in no request line, no log and no Referer.
The page that a stranger gets (`join_page`) posts it here. A key works once; the next one is made at that moment and
announced, so that a second device can follow. All of it lives in memory: a restart forgets every device.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from voice_agent.server.responses import error_response

log = logging.getLogger(__name__)

JOIN_PATH = "/join"
COOKIE = "__Host-voice-agent"
"""The prefix makes browsers insist on Secure, Path=/ and no Domain."""
COOKIE_SECONDS = 30 * 24 * 3600
KEY_BYTES = 16
"""128 bits: nothing to guess, and a link short enough for a small QR code."""
MAX_DEVICES = 64
MAX_BODY = 1024


class Devices:
    """Who has joined, and the one key that lets the next one in."""

    def __init__(self, announce: Callable[[str], None], limit: int = MAX_DEVICES) -> None:
        """`announce` gets every new key. With more than `limit` devices the one that joined first is forgotten."""
        self._announce = announce
        self._key = b""
        self._tokens: deque[bytes] = deque(maxlen=limit)

    def invite(self) -> None:
        """Make and announce a new key; the one before, if nobody has used it, is void."""
        key = secrets.token_urlsafe(KEY_BYTES)
        self._key = _digest(key)
        self._announce(key)

    def join(self, key: str) -> str | None:
        """The cookie's value for the announced key, which is spent by this; None for any other."""
        if not self._key or not hmac.compare_digest(_digest(key), self._key):
            return None
        token = secrets.token_urlsafe(32)
        self._tokens.append(_digest(token))
        self.invite()
        return token

    def know(self, cookies: Iterable[str]) -> bool:
        """Compares each with each, always all of them, so that timing tells nothing."""
        presented = [_digest(cookie) for cookie in cookies]
        matches = [hmac.compare_digest(one, token) for one in presented for token in self._tokens]
        return any(matches)


@dataclass(frozen=True, slots=True)
class Entrance:
    names: frozenset[str]
    """What Host may carry: the machine's names and addresses on the network, IPv6 in brackets."""
    devices: Devices


def join_endpoint(devices: Devices, body_timeout: float) -> Callable[[Request], Awaitable[Response]]:
    """POST {"key": KEY} -> 204 with the cookie, or 401."""

    async def join(request: Request) -> Response:
        try:
            async with asyncio.timeout(body_timeout):
                key = _key_in(await _read(request))
        except TimeoutError:
            return error_response(408, "slow_body", f"the key did not arrive within {body_timeout:g} seconds")
        except ClientDisconnect:
            return error_response(400, "disconnected", "the client left before its key was complete")
        if key is None:
            return error_response(400, "bad_key", 'expected a small JSON object {"key": "…"}')
        token = devices.join(key)
        if token is None:
            return error_response(
                401, "key_spent", "this link was used already or has been replaced; open the newest one", _CHALLENGE
            )
        log.info("= a device has joined")
        answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
        answer.set_cookie(COOKIE, token, COOKIE_SECONDS, path="/", secure=True, httponly=True, samesite="strict")
        return answer

    return join


_CHALLENGE = {"WWW-Authenticate": "Bearer"}


async def _read(request: Request) -> bytes:
    """The body, or its beginning where it is longer than any key."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            break
    return bytes(body[: MAX_BODY + 1])


def _key_in(body: bytes) -> str | None:
    if len(body) > MAX_BODY:
        return None
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    key = parsed.get("key") if isinstance(parsed, dict) else None
    return key if isinstance(key, str) else None


def _digest(text: str) -> bytes:
    """Of equal length whatever was presented; and a dump of this process shows no usable cookie."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
