"""Messages to the text a model was trained on.

The template comes from the GGUF itself; a file without one, or with one that fails on a plain conversation, gets
ChatML. A template may put words of its own in: Qwen's and SmolLM2's add a default system prompt where the messages
have none. Text of messages that looks like the template's markup is defused, so that nobody speaks or types
himself into another role.

Rendering keeps prefixes: a longer conversation's text begins with the shorter one's (with ChatML exactly; other
templates as far as they do not look ahead). The key/value cache lives on that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from voice_agent.engines.ports import ChatMessage

Template = Callable[[list[dict[str, str]], bool], str]
"""(messages, whether to open the assistant's turn) → text. May raise anything."""

_FINAL_PUNCTUATION = ".?!…。？！,;:-–—\"'”’"


def chatml(messages: list[dict[str, str]], open_reply: bool) -> str:
    turns = [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages]
    return "".join(turns) + ("<|im_start|>assistant\n" if open_reply else "")


def jinja_template(source: str, *, bos: str, eos: str) -> Template:
    """The template of a GGUF, run in Jinja's sandbox: a downloaded file may carry any program. Raises on bad syntax."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    opened = Jinja2ChatFormatter(source, eos_token=eos, bos_token=bos, add_generation_prompt=True)
    closed = Jinja2ChatFormatter(source, eos_token=eos, bos_token=bos, add_generation_prompt=False)

    def render(messages: list[dict[str, str]], open_reply: bool) -> str:
        typed: Any = messages
        return (opened if open_reply else closed)(messages=typed).prompt

    return render


class ChatFormat:
    """Pure once made. `markup`: the control tokens' texts, which no message may contain."""

    def __init__(self, template: Template | None, markup: Iterable[str]) -> None:
        texts = sorted((text for text in markup if text), key=len, reverse=True)
        self._markup = re.compile("|".join(re.escape(text) for text in texts)) if texts else None
        self._template, self._system_in_user = _usable(template)

    def prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The conversation with the assistant's turn opened."""
        return self._template(self._plain(messages), True)

    def open_turn(self, messages: Sequence[ChatMessage]) -> tuple[str, str] | None:
        """The conversation up to the end of the last user message without its final punctuation, and the template's
        text that would close that turn. None if the last message is not a user's or says nothing."""
        plain = self._plain(messages)
        if not plain or plain[-1]["role"] != "user":
            return None
        said = strip_final_punctuation(plain[-1]["content"])
        if not said:
            return None
        plain[-1]["content"] = said
        text = self._template(plain, False)
        end = text.rfind(said)
        if end < 0:
            return None
        end += len(said)
        return text[:end], text[end:]

    def _plain(self, messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
        """Without empty messages and without markup."""
        plain = [{"role": m.role, "content": self._defuse(m.content).strip()} for m in messages]
        plain = [message for message in plain if message["content"]]
        if self._system_in_user and len(plain) > 1 and plain[0]["role"] == "system" and plain[1]["role"] == "user":
            plain[1]["content"] = f"{plain[0]['content']}\n\n{plain[1]['content']}"
            del plain[0]
        return plain

    def _defuse(self, text: str) -> str:
        # Removing one markup may join the text around it to another.
        while self._markup and self._markup.search(text):
            text = self._markup.sub(" ", text)
        return text


def strip_final_punctuation(text: str) -> str:
    """A recogniser puts a full stop after anything; what it put says nothing about the turn."""
    return text.rstrip().rstrip(_FINAL_PUNCTUATION + " ")


def _usable(template: Template | None) -> tuple[Template, bool]:
    """The template if it copes with a plain conversation, and whether system text must go into the user's message."""
    roles = ("user", "assistant", "user")
    turns = [{"role": role, "content": f"probe {number}"} for number, role in enumerate(roles)]
    if template is None or not _copes(template, turns):
        return chatml, False
    return template, not _copes(template, [{"role": "system", "content": "probe of rules"}, *turns])


def _copes(template: Template, messages: list[dict[str, str]]) -> bool:
    try:
        text = template(messages, True)
    except Exception:  # a template is somebody else's program: whatever it raises, it does not cope
        return False
    return all(message["content"] in text for message in messages)


def fit(
    messages: Sequence[ChatMessage],
    count: Callable[[Sequence[ChatMessage]], int],
    *,
    limit: int,
    dropped: int = 0,
) -> tuple[tuple[ChatMessage, ...], int]:
    """The messages that fit into `limit` tokens as `count` sees them, and how many were dropped.

    The leading system messages stay, and so does everything from the last user message on; the oldest of the rest go,
    up to the next user message. Dropping changes the beginning of the prompt and so costs a whole prefill: it goes on
    to three quarters of the limit, and the caller hands `dropped` back with the next request of that conversation,
    so that it happens once in many turns. The result may still be over the limit if what must stay is too long.
    """
    head = 0
    while head < len(messages) and messages[head].role == "system":
        head += 1
    starts = [i for i in range(head, len(messages)) if messages[i].role == "user"]
    kept = head + dropped if head + dropped in starts else head

    def rest(first: int) -> tuple[ChatMessage, ...]:
        return (*messages[:head], *messages[first:])

    if count(rest(kept)) > limit:
        later = [start for start in starts if start > kept]
        enough = (start for start in later if count(rest(start)) <= limit * 3 // 4)
        kept = next(enough, later[-1] if later else kept)
    return rest(kept), kept - head
