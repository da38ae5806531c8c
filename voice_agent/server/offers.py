"""The body of `POST /api/offer`: read it within bounds, check it, take it apart."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request

from voice_agent.errors import OfferError

MAX_OFFER_BYTES = 64 * 1024
"""A browser's offer with audio, video and every extension is below 10 KiB."""


@dataclass(frozen=True, slots=True)
class Offer:
    sdp: str
    type: str
    fields: dict[str, Any]
    """Everything else in the object; whoever takes the call ignores what it does not know."""


async def read_offer(request: Request, body_timeout: float) -> Offer:
    """Raises OfferError: 413 too large, 408 too slow, 400 anything else."""
    try:
        async with asyncio.timeout(body_timeout):
            body = await _read_body(request)
    except TimeoutError as error:
        raise OfferError(408, "slow_body", f"the offer did not arrive within {body_timeout:g} seconds") from error
    except ClientDisconnect as error:
        raise OfferError(400, "disconnected", "the client left before the offer was complete") from error
    return parse_offer(body)


async def _read_body(request: Request) -> bytes:
    too_large = OfferError(413, "too_large", f"an offer may have {MAX_OFFER_BYTES} bytes at most")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > MAX_OFFER_BYTES:
        raise too_large
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_OFFER_BYTES:
            raise too_large
    return bytes(body)


def parse_offer(body: bytes) -> Offer:
    """The content type is not looked at: what counts is that the bytes are the JSON object we need."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, numbers or nesting without end
        detail = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise OfferError(400, "bad_json", f"the body is not JSON{detail}") from error
    if not isinstance(parsed, dict):
        raise OfferError(400, "bad_json", "the body must be a JSON object with sdp and type")
    sdp, kind = _text(parsed, "sdp"), _text(parsed, "type")
    if kind != "offer":
        raise OfferError(400, "bad_offer", "type must be 'offer'")
    return Offer(sdp, kind, {key: value for key, value in parsed.items() if key not in ("sdp", "type")})


def _text(parsed: dict[str, Any], key: str) -> str:
    value = parsed.get(key)
    if not isinstance(value, str) or not value.strip():
        raise OfferError(400, "bad_offer", f"{key} is missing or not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can spell half a surrogate pair
        raise OfferError(400, "bad_offer", f"{key} holds characters that are none") from error
    return value
