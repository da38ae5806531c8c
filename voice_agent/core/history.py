"""The conversation as the model sees it: what was said and what was heard, nothing else.

Invariants: no message is empty; roles alternate after the system prompt (two user messages in a row are merged, as
chat templates need); an assistant message never holds more than the listener heard.
"""

from __future__ import annotations

from voice_agent.core.commands import Message


class History:
    def __init__(self, system_prompt: str, earlier: tuple[Message, ...] = ()) -> None:
        """`earlier` is what was said before a connection was lost: messages of another history."""
        self.set_system(system_prompt)
        self._messages = [message for message in earlier if message.role != "system"]

    def set_system(self, prompt: str) -> None:
        """From now on the model reads this first; empty: nothing."""
        self._system = (Message("system", prompt),) if prompt.strip() else ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self._system, *self._messages)

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
