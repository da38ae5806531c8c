"""One file over HTTPS, continued where the last attempt stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx

from voice_agent.modelstore.disk import size_of
from voice_agent.modelstore.progress import SourceFailed, WrongContent

_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
"""Seconds of silence on a connection, and to open one."""
_STALLS = 4
"""Attempts in a row that bring nothing new before a source is given up."""


class WebFetcher:
    """Downloads by HTTP with ranges. Proxies and certificates come from the usual environment variables."""

    def __init__(self, pause: Callable[[float], None] = time.sleep) -> None:
        self._pause = pause

    def fetch(self, url: str, size: int, partial: Path, report: Callable[[int], None]) -> None:
        """Complete `partial` to `size` bytes from `url`; what it already holds is taken as the file's beginning.

        `report` is told the bytes in `partial` as they grow. Raises SourceFailed; `partial` keeps what arrived unless
        the server sends a longer file, which cannot be the right one (WrongContent, `partial` removed).
        """
        stalls = 0
        with httpx.Client(timeout=_TIMEOUT, follow_redirects=True) as client:
            while (have := size_of(partial)) < size:
                try:
                    self._attempt(client, url, size, partial, report)
                    trouble = "the connection ended early"
                except httpx.TransportError as error:
                    trouble = f"{error}" or type(error).__name__
                    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol) and not have:
                        raise SourceFailed(f"no connection to {httpx.URL(url).host} ({trouble})") from error
                except httpx.HTTPError as error:
                    raise SourceFailed(f"{httpx.URL(url).host}: {error}") from error
                if size_of(partial) > have:
                    stalls = 0
                elif (stalls := stalls + 1) >= _STALLS:
                    raise SourceFailed(f"{httpx.URL(url).host} delivers nothing more ({trouble})")
                else:
                    self._pause(2.0 ** (stalls - 1))

    def _attempt(self, client: httpx.Client, url: str, size: int, partial: Path, report: Callable[[int], None]) -> None:
        have = size_of(partial)
        # `identity`: a compressed body would make offsets meaningless.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with client.stream("GET", url, headers=headers) as response:
            if not self._usable(response, have):
                partial.unlink(missing_ok=True)
                return
            continues = response.status_code == httpx.codes.PARTIAL_CONTENT
            written = have if continues else 0
            with partial.open("ab" if continues else "wb") as file:
                # No block size here: httpx would collect a block first, and lose it when the connection breaks.
                for block in response.iter_bytes():
                    written += len(block)
                    if written > size:
                        break
                    file.write(block)
                    report(written)
        if written > size:
            partial.unlink(missing_ok=True)
            raise WrongContent(f"{httpx.URL(url).host} sends more than {size:,} bytes")

    @staticmethod
    def _usable(response: httpx.Response, have: int) -> bool:
        """True: the body may be written. False: start again from nothing. Raises when the server says no."""
        host, status = response.url.host, response.status_code
        if status == httpx.codes.OK:
            return True
        if status == httpx.codes.PARTIAL_CONTENT:
            # A server that answers another range than it was asked for would leave a hole.
            return str(response.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
        if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return False
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= 500:
            raise httpx.RemoteProtocolError(f"status {status}")
        raise SourceFailed(f"{host} answers {status} {response.reason_phrase}")
