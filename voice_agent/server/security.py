"""Who may talk to the server at all: decided before routing, for HTTP requests and websockets alike.

A server on 127.0.0.1 is not private: any web page the user visits can send requests to it. Three checks stop that.

- Host: after DNS rebinding the page's own name points here, but the Host header still carries that name.
- Origin: browsers put the page's origin on every websocket and on every request that could change something.
- Sec-Fetch-Site: browsers say so when a request without Origin (an image, a script, a frame) comes from another site.

Programs that are not browsers send neither Origin nor Sec-Fetch-Site and pass. When keys are set, everything but the
page's files and the two probes also needs one of them. On the local network (`serve --lan`) everything but /healthz
and the exchange of a one-time key needs a key or the cookie of a device that has joined.

`refusal` is a pure function of the facts; `SecurityMiddleware` gathers the facts and acts on the answer.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voice_agent.server.join_page import join_page
from voice_agent.server.joining import COOKIE, JOIN_PATH, Entrance
from voice_agent.server.responses import error_response
from voice_agent.settings import ServerSettings

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s:/@\[\]\\?#,]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>.+)", re.ASCII)
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}

RESPONSE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
}
"""On every HTTP answer, refusals included."""


@dataclass(frozen=True, slots=True)
class Policy:
    host_names: frozenset[str]
    """Names that Host may carry, with any port or none."""
    origins: frozenset[tuple[str, int | None]]
    """(name, port) of origins that are welcome besides the server's own; port None means any."""
    api_keys: tuple[bytes, ...]
    keys_required: bool
    public_paths: frozenset[str]
    """Exact paths that need no key."""
    entrance: Entrance | None = None
    """How devices of the local network come in; None: they do not."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """All the decision depends on. Header texts are as received; absent ones are empty."""

    path: str
    method: str = "GET"
    scheme: str = "http"
    """http or https, for websockets too."""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    fetch_site: str = ""
    fetch_mode: str = ""
    fetch_dest: str = ""
    keys: tuple[str, ...] = ()
    """Every key presented, from Authorization and from the query."""
    cookies: tuple[str, ...] = ()
    """Values of our cookie."""
    wants_page: bool = False
    """A person opens an address: the answer may be a page."""


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    code: str
    message: str


def policy_for(settings: ServerSettings, page: Iterable[str], entrance: Entrance | None = None) -> Policy:
    """`page` has the paths of the page's files, which hold no secret: with static keys only, they are open to all."""
    allowed = [parsed for text in settings.allowed_hosts if (parsed := _parse_host(_bracketed(text)))]
    own = _parse_host(_bracketed(settings.host))
    names = entrance.names if entrance else [*_LOOPBACK_NAMES, *([own[0]] if own else [])]
    return Policy(
        host_names=frozenset([*(name for name, _ in allowed), *names]),
        origins=frozenset(allowed),
        api_keys=tuple(key.encode() for key in settings.api_keys if key),
        keys_required=bool(settings.api_keys) or settings.lan,
        public_paths=frozenset(["/healthz", JOIN_PATH] if settings.lan else [*page, "/healthz", "/readyz"]),
        entrance=entrance,
    )


def refusal(facts: RequestFacts, policy: Policy) -> Refusal | None:
    """Why this request must not reach a route; None if it may."""
    host = _parse_host(facts.hosts[0]) if len(facts.hosts) == 1 else None
    if host is None or host[0] not in policy.host_names:
        shown = ", ".join(facts.hosts)[:100] or "nothing"
        return Refusal(403, "foreign_host", f"this server is not {shown}; allowed_hosts can name more hosts")
    own = (facts.scheme, host[0], _port(facts.scheme, host[1]))
    for text in facts.origins:
        if not _origin_welcome(text, own, policy):
            return Refusal(403, "foreign_origin", f"pages of {text[:100] or 'nowhere'} may not use this server")
    if not facts.origins and facts.fetch_site in ("cross-site", "same-site") and not _opens_the_page(facts):
        return Refusal(403, "foreign_site", "another site's page may not use this server")
    if policy.keys_required and facts.path not in policy.public_paths and not _may_enter(facts, policy):
        return Refusal(401, "unauthorized", _NEEDS_KEY if policy.entrance is None else _NEEDS_JOINING)
    return None


_NEEDS_KEY = "this server needs a key: 'Authorization: Bearer KEY' or '?key=KEY'"
_NEEDS_JOINING = (
    "this agent is private: open the link (or scan the QR code) shown where the agent was started, once per device; "
    "programs send 'Authorization: Bearer KEY' with one of api_keys"
)


def _may_enter(facts: RequestFacts, policy: Policy) -> bool:
    joined = policy.entrance is not None and policy.entrance.devices.know(facts.cookies)
    return _any_key(facts.keys, policy.api_keys) or joined


def exposure(settings: ServerSettings, addresses: Iterable[str]) -> str | None:
    """Why listening on these IP addresses would be careless; None if it is fine."""
    if settings.api_keys or settings.allow_open or settings.lan:
        return None
    beyond = [address for address in addresses if not ipaddress.ip_address(address.partition("%")[0]).is_loopback]
    if not beyond:
        return None
    return (
        f"host {settings.host} can be reached from other machines, and no api_keys are set: anybody could use the "
        "agent. Set api_keys, or allow_open if that is what you want, or listen on 127.0.0.1"
    )


def _bracketed(name: str) -> str:
    """An IPv6 address as it appears in a Host header; anything else unchanged."""
    bare = name.strip()
    try:
        return f"[{ipaddress.IPv6Address(bare).compressed}]"
    except ValueError:
        return bare


def _parse_host(text: str) -> tuple[str, int | None] | None:
    """(lower-case name without trailing dot, port) of a Host header or an origin's authority."""
    match = _HOST.fullmatch(text.strip().lower())
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and port > 65535):
        return None
    return match["name"].removesuffix("."), port


def _port(scheme: str, given: int | None) -> int | None:
    return _DEFAULT_PORTS.get(scheme) if given is None else given


def _origin_welcome(text: str, own: tuple[str, str, int | None], policy: Policy) -> bool:
    match = _ORIGIN.fullmatch(text.strip().lower())
    host = _parse_host(match["host"]) if match else None
    if match is None or host is None:
        return False  # `null`, a browser extension, garbage
    name, port = host[0], _port(match["scheme"], host[1])
    return (match["scheme"], name, port) == own or not policy.origins.isdisjoint({(name, None), (name, port)})


def _opens_the_page(facts: RequestFacts) -> bool:
    """Somebody followed a link to the page: the one thing another site may cause."""
    return (facts.method, facts.path, facts.fetch_mode, facts.fetch_dest) == ("GET", "/", "navigate", "document")


def _any_key(presented: tuple[str, ...], keys: tuple[bytes, ...]) -> bool:
    """Compare each with each, always all of them, so that timing tells nothing."""
    matches = [hmac.compare_digest(one.encode("utf-8", "replace"), key) for one in presented for key in keys]
    return any(matches)


def gather_facts(scope: Scope) -> RequestFacts:
    headers = Headers(scope=scope)
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    fetch_dest = headers.get("sec-fetch-dest", "")
    by_hand = scope.get("method") in ("GET", "HEAD") and "text/html" in headers.get("accept", "")
    bearer = [text[7:].strip() for text in headers.getlist("authorization") if text[:7].lower() == "bearer "]
    return RequestFacts(
        path=scope["path"],
        method=scope.get("method", "GET"),
        scheme=str(scope["scheme"]).replace("ws", "http"),
        hosts=tuple(headers.getlist("host")),
        origins=tuple(headers.getlist("origin")),
        fetch_site=headers.get("sec-fetch-site", ""),
        fetch_mode=headers.get("sec-fetch-mode", ""),
        fetch_dest=fetch_dest,
        keys=(*bearer, *query.get("key", ())),
        cookies=_cookies(headers),
        wants_page=fetch_dest == "document" or (by_hand and not fetch_dest),
    )


def _cookies(headers: Headers) -> tuple[str, ...]:
    pairs = [pair.strip().partition("=") for line in headers.getlist("cookie") for pair in line.split(";")]
    return tuple(value for name, _, value in pairs if name == COOKIE)


class SecurityMiddleware:
    """Refuses what `refusal` refuses (a websocket before it is accepted) and adds the security headers."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in RESPONSE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        facts = gather_facts(scope)
        refused = refusal(facts, self._policy)
        if refused is None:
            await self._app(scope, receive, send_secured)
        elif scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            # The server answers a close before accept with a plain 403.
            await send({"type": "websocket.close", "code": 1008, "reason": refused.code})
        elif refused.status == 401 and facts.wants_page and self._policy.entrance is not None:
            await join_page()(scope, receive, send_secured)
        else:
            challenge = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
            response = error_response(refused.status, refused.code, refused.message, challenge)
            await response(scope, receive, send_secured)
