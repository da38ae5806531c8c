"""What a client may ask for over its side channel (docs/events.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from voice_agent.core.events import Event, InterruptAsked, TextTyped
from voice_agent.session.choices import Choices, read_choices
from voice_agent.session.publisher import Publisher

LONGEST_TEXT = 4000
"""Characters of a typed message; more would not fit the model's window beside the conversation."""


class Call(Protocol):
    def happened(self, event: Event) -> None: ...

    def choose(self, choices: Choices) -> None: ...

    def hang_up(self) -> None: ...


def handle_message(message: dict[str, Any], call: Call, publisher: Publisher, clock: Callable[[], float]) -> None:
    """Act on one message; anything unknown is answered with an `error` event and changes nothing."""
    match message:
        case {"type": "ping"}:
            publisher.say("pong", id=message.get("id"))
        case {"type": "text", "text": str(text)} if text.strip() and len(text) <= LONGEST_TEXT:
            call.happened(TextTyped(clock(), text.strip()))
        case {"type": "text"}:
            publisher.error("bad_message", f"`text` needs a `text` of 1 to {LONGEST_TEXT} characters")
        case {"type": "interrupt"}:
            call.happened(InterruptAsked(clock()))
        case {"type": "settings"}:
            try:
                choices = read_choices(message)
            except ValueError as error:
                publisher.error("bad_message", str(error))
            else:
                call.choose(choices)
        case {"type": "hangup"}:
            call.hang_up()
        case _:
            publisher.error("bad_message", f"unknown message type {str(message.get('type'))[:40]!r}")
