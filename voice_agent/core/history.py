"""The conversation as the model sees it: what was said and what was heard, nothing else.

Invariants: no message is empty; roles alternate after the system prompt (two user messages in a row are merged, as
chat templates need); an assistant message never holds more than the listener heard.
"""

from __future__ import annotations

from voice_agent.core.commands import Message


class History:
    def __init__(self, system_prompt: str, earlier: tuple[Message, ...] = ()) -> None:
        """`earlier` is what was said before a connection was lost: messages of another history."""
        self._system: tuple[Message, ...] = ()
        self.instruct(system_prompt)
        self._messages = [message for message in earlier if message.role != "system"]

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self._system, *self._messages)

    def instruct(self, system_prompt: str) -> None:
        """Replace the system prompt; empty: none."""
        self._system = (Message("system", system_prompt),) if system_prompt.strip() else ()

    def with_user(self, text: str) -> tuple[Message, ...]:
        """The messages as they would be after `text`, without changing anything (speculation)."""
        return (*self._system, *_merged(self._messages, Message("user", text.strip())))

    def add_user(self, text: str) -> None:
        self._messages = _merged(self._messages, Message("user", text.strip()))

    def add_assistant(self, heard: str, *, interrupted: bool) -> None:
        """Record a reply as heard; a reply nobody heard leaves no message."""
        self._messages = _merged(self._messages, Message("assistant", heard.strip(), interrupted))


def _merged(messages: list[Message], new: Message) -> list[Message]:
    if not new.content:
        return messages
    if messages and messages[-1].role == new.role:
        last = messages[-1]
        return [*messages[:-1], Message(new.role, f"{last.content} {new.content}", new.interrupted)]
    return [*messages, new]
