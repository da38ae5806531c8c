"""The page's files.

The folder is listed once, at start, and each file becomes one exact path. A path from a request is only ever compared
with that list and never joined to a folder name, so there is nothing to traverse. Contents are read per request: an
edited file shows up on reload.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from voice_agent.errors import ConfigError
from voice_agent.server.responses import error_response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
"""Own table: the system's MIME database differs between machines (and has .js as text/plain on some). A file of
another type is not served."""


def list_files(web_root: Path) -> dict[str, Path]:
    """Request path -> file, for every regular file of a known type below `web_root`; "/" is index.html.

    Hidden files and links that lead elsewhere stay out. Raises ConfigError where there is no index.html.
    """
    root = web_root.resolve()
    index = root / "index.html"
    if not index.is_file():
        raise ConfigError(f"the page is missing: there is no {index}")
    files = {"/": index}
    for file in sorted(root.rglob("*")):
        relative = file.relative_to(root)
        hidden = any(part.startswith(".") for part in relative.parts)
        if not hidden and file.suffix in _TYPES and file.is_file() and file.resolve().is_relative_to(root):
            files[f"/{relative.as_posix()}"] = file
    return files


async def file_response(request: Request, file: Path) -> Response:
    try:
        content = await asyncio.to_thread(file.read_bytes)
    except OSError:  # removed since the start
        return error_response(404, "not_found", f"there is nothing at {request.url.path}")
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(content, headers={**headers, "Content-Type": _TYPES[file.suffix]})
