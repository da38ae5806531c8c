"""A language model of one's own: here no model at all but a few rules.

    python examples/own_language_model.py      then open http://127.0.0.1:8080 and ask when we are open

The same engine by setting, without this program:

    PYTHONPATH=examples voice-agent serve --llm own_language_model:OpeningHours
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

from voice_agent import Agent
from voice_agent.engines.ports import ChatRequest, GenerationEnded, LanguageEvent, TextDelta

RULES = (
    ({"open", "hours", "close", "closed", "when"}, "We are open from nine to six, Monday to Saturday."),
    ({"where", "address", "find"}, "You find us at twelve Market Street, next to the station."),
    ({"thanks", "thank", "bye", "goodbye"}, "You are welcome. Goodbye!"),
)
OTHERWISE = "I only know when we are open and where we are. Which would you like to hear?"


class OpeningHours:
    """Fits `voice_agent.engines.ports.LanguageModel`; docs/writing-an-engine.md walks through it."""

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to free."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[LanguageEvent]:
        answer = self._answer(request.messages[-1].content)
        for number, word in enumerate(answer.split()):
            # Speech begins with the first clause, long before the last word: hand over what there is.
            yield TextDelta(word if number == 0 else f" {word}")
        yield GenerationEnded("stop", prompt_tokens=0, cached_tokens=0, completion_tokens=len(answer.split()))

    async def end_of_turn(self, request: ChatRequest) -> float | None:
        """Rules cannot tell whether a sentence is complete; the agent's other witnesses decide."""
        return None

    def forget(self, conversation: str) -> None:
        """Keeps nothing of any call."""

    def _answer(self, question: str) -> str:
        words = set("".join(c if c.isalpha() else " " for c in question.casefold()).split())
        return next((answer for keys, answer in RULES if keys & words), OTHERWISE)


if __name__ == "__main__":
    sys.exit(Agent(llm=OpeningHours(), greeting="Market Street Books, how can I help?").run())
