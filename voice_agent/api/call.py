"""One call, as the embedding program sees it."""

from __future__ import annotations

from typing import Any

from voice_agent.api.events import TurnReported, reported
from voice_agent.core.commands import Message
from voice_agent.session.sayings import Said
from voice_agent.session.session import Session

__all__ = ["Call", "Message", "Said"]


class Call:
    """A call that goes on, or is over. Hooks get it, and `Agent.call` returns it; nobody else makes one.

    All methods belong to the event loop that runs the agent; from another thread use
    `asyncio.run_coroutine_threadsafe`.
    """

    def __init__(self, session: Session) -> None:
        self.id: str = session.id
        """As in log lines, traces and the HTTP interface."""
        self.data: dict[str, Any] = {}
        """Yours: whatever your hooks want to remember of this call."""
        self.end_reason: str | None = None
        """Why the call ended; None while it goes on."""
        self._session = session

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation as the language model sees it: what was said, and of replies what was heard."""
        return self._session.conversation.messages

    @property
    def reports(self) -> list[TurnReported]:
        """Where the time of each answered turn went, oldest first."""
        return [reported(report.as_dict()) for report in self._session.conversation.reports]

    async def say(self, text: str, *, interruptible: bool = True, at_once: bool = False) -> Said:
        """Say a text in the agent's voice, and wait until it is over: what was heard, and whether it was cut off.

        The text begins when nobody has the floor: it waits for a reply that is live, and for a caller who is speaking
        and the answer to them. Several texts are said in the order they were asked for.

        With `at_once` it cuts off the reply that is live (also one that is not interruptible). It still lets a caller
        finish who is speaking, unless it is not interruptible itself: then it is said over them.

        With `interruptible=False` nothing the caller does stops or pauses it: not speech, not typed text, not the stop
        button; hanging up does. What the caller says meanwhile is understood after its end, as a turn of its own;
        noise, a backchannel ("mm-hm") or the echo of the text itself are none.

        What was heard becomes part of the history. Cancelling ends the waiting, not the text.
        Raises TransportClosed if the call is over before the text begins, ValueError if there is no text,
        VoiceAgentError if too many texts wait.
        """
        return await self._session.say(text, interruptible=interruptible, at_once=at_once)

    def hang_up(self) -> None:
        """End the call. Safe to call twice."""
        self._session.hang_up()
