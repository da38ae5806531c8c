"""JSON answers. Every error, wherever it comes from, has one shape: {"error": {"code", "message"}}."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from voice_agent.errors import OfferError, VoiceAgentError

RETRY_AFTER = 2
"""Seconds after which a client that was told 503 may try again: about as long as a model load or a hang-up takes."""

_log = logging.getLogger(__name__)


def json_response(body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(body, status, {"Cache-Control": "no-store", **(headers or {})})


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    retry = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    return json_response({"error": {"code": code, "message": message}}, status, {**retry, **(headers or {})})


async def on_http_exception(request: Request, error: Exception) -> Response:
    """What the router raises (404, 405 with Allow, …)."""
    assert isinstance(error, HTTPException)
    try:
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    except ValueError:
        code = "error"
    if error.status_code == 404:
        message = f"there is nothing at {request.url.path[:200]}"
    elif error.status_code == 405:
        message = f"{request.method} does not work here"
    else:
        message = error.detail
    return error_response(error.status_code, code, message, error.headers)


async def on_offer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OfferError)
    return error_response(error.status, error.code, str(error))


async def on_voice_agent_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, VoiceAgentError)
    _log.error("! %s %s: %s", request.method, request.url.path, error)
    return error_response(500, "internal", str(error))


async def on_any_error(request: Request, error: Exception) -> Response:
    """A fault of ours. The server logs the traceback; the client learns nothing of it."""
    return error_response(500, "internal", "something went wrong here; the server's log says what")
