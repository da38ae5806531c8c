"""What the HTTP server needs from whoever keeps the calls, and nothing more.

`session/` implements it; tests use a fake. All methods belong to the event loop's thread, and the ones that are not
coroutines return at once.
"""

from __future__ import annotations

from typing import Any, Protocol


class Calls(Protocol):
    @property
    def ready(self) -> bool:
        """True once every model is loaded and warm."""

    def progress(self) -> dict[str, Any]:
        """How far loading is, as JSON. The page shows the text list `loading` (names of what is still to come)."""

    async def accept(self, sdp: str, type: str, fields: dict[str, Any], /) -> tuple[str, str, str]:
        """Take a call: (sdp, type, session id) of the answer.

        `fields` is whatever else the offer's JSON object held. Raises OfferError, whose status 503 means "not now":
        no free slot, or models still loading.
        """

    def report(self, session_id: str, /) -> dict[str, Any] | None:
        """The turn reports of a call, as `GET /api/sessions/{id}/report` shows them; None: no such call."""

    def history(self, session_id: str, /) -> dict[str, Any] | None:
        """The conversation as the model sees it; None: no such call."""

    async def hang_up(self, session_id: str, /) -> bool:
        """End a call; False: there is no such call. An ended call can be hung up again."""

    def listing(self) -> list[dict[str, Any]]:
        """Every call in memory, for the operator; never shown over HTTP, because a session id is a capability."""
