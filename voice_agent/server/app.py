"""The HTTP side: routes to `Calls`, the page, health and metrics. No decisions beyond the shape of requests.

| route | answer |
|---|---|
| GET / and the page's files | the page |
| GET /healthz | 200 as long as the event loop turns |
| GET /readyz | 200 when calls are accepted, else 503 with what is still loading |
| GET /metrics | Prometheus text |
| POST /api/offer | {sdp, type, …} -> {sdp, type, session_id} |
| GET /api/sessions/{id}/report, …/history | JSON, also for a while after the call |
| DELETE /api/sessions/{id} | hang up |
| POST /join | on the local network: a one-time key for a cookie |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voice_agent.errors import OfferError, VoiceAgentError
from voice_agent.server import responses
from voice_agent.server.joining import JOIN_PATH, Entrance, join_endpoint
from voice_agent.server.metrics import Metrics
from voice_agent.server.offers import read_offer
from voice_agent.server.ports import Calls
from voice_agent.server.responses import RETRY_AFTER, error_response, json_response
from voice_agent.server.security import SecurityMiddleware, policy_for
from voice_agent.server.static import file_response, list_files
from voice_agent.settings import Settings

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(
    calls: Calls,
    settings: Settings,
    metrics: Metrics,
    web_root: Path,
    *,
    body_timeout: float = 10.0,
    entrance: Entrance | None = None,
) -> Starlette:
    """`body_timeout` is how many seconds a client may take to send an offer; `entrance` lets devices of the local
    network join. Raises ConfigError: no page there."""
    files = list_files(web_root)
    routes: list[BaseRoute] = [Route(path, _page_file(file)) for path, file in files.items()]
    routes += _probes(calls, metrics)
    routes += [
        Route("/api/offer", _offer(calls, metrics, body_timeout), methods=["POST"]),
        Route("/api/sessions/{session_id}/report", _record(calls.report)),
        Route("/api/sessions/{session_id}/history", _record(calls.history)),
        Route("/api/sessions/{session_id}", _hang_up(calls), methods=["DELETE"]),
    ]
    if entrance is not None:
        routes.append(Route(JOIN_PATH, join_endpoint(entrance.devices, body_timeout), methods=["POST"]))
    policy = policy_for(settings.server, files, entrance)
    app = Starlette(
        routes=routes,
        middleware=[Middleware(SecurityMiddleware, policy=policy)],
        exception_handlers={
            HTTPException: responses.on_http_exception,
            OfferError: responses.on_offer_error,
            VoiceAgentError: responses.on_voice_agent_error,
            Exception: responses.on_any_error,
        },
    )
    app.router.redirect_slashes = False  # a redirect would be built from the client's own Host header
    return app


def _page_file(file: Path) -> Endpoint:
    async def page_file(request: Request) -> Response:
        return await file_response(request, file)

    return page_file


def _probes(calls: Calls, metrics: Metrics) -> list[BaseRoute]:
    async def healthz(request: Request) -> Response:
        return json_response({"status": "ok"})

    async def readyz(request: Request) -> Response:
        if calls.ready:
            return json_response({"ready": True})
        return json_response({"ready": False, "progress": calls.progress()}, 503, {"Retry-After": str(RETRY_AFTER)})

    async def prometheus(request: Request) -> Response:
        body, content_type = metrics.exposition()
        return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", prometheus)]


def _offer(calls: Calls, metrics: Metrics, body_timeout: float) -> Endpoint:
    async def offer(request: Request) -> Response:
        try:
            offered = await read_offer(request, body_timeout)
            if not calls.ready:
                raise OfferError(503, "loading", "the models are still loading; try again in a moment")
            sdp, kind, session_id = await calls.accept(offered.sdp, offered.type, offered.fields)
        except OfferError as error:
            metrics.offer_refused(error.code)
            raise
        if await request.is_disconnected():
            # Nobody will read the answer: free the slot now, not when the connection attempt times out.
            await calls.hang_up(session_id)
            return error_response(400, "disconnected", "the client left before the answer")
        return json_response({"sdp": sdp, "type": kind, "session_id": session_id})

    return offer


def _record(look_up: Callable[[str], dict[str, Any] | None]) -> Endpoint:
    async def record(request: Request) -> Response:
        found = look_up(request.path_params["session_id"])
        return _no_such_call() if found is None else json_response(found)

    return record


def _hang_up(calls: Calls) -> Endpoint:
    async def hang_up(request: Request) -> Response:
        if await calls.hang_up(request.path_params["session_id"]):
            return Response(status_code=204)
        return _no_such_call()

    return hang_up


def _no_such_call() -> Response:
    return error_response(404, "no_such_session", "there is no such call, or it ended too long ago")
