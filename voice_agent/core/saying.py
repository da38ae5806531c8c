"""Texts the program wants said: each waits until nobody has the floor, unless it is asked for at once."""

from __future__ import annotations

from collections import deque

from voice_agent.core.agent_floor import AgentFloor
from voice_agent.core.caller_floor import CallerFloor
from voice_agent.core.events import SayAsked


class Saying:
    def __init__(self, agent: AgentFloor, caller: CallerFloor) -> None:
        self._agent = agent
        self._caller = caller
        self._waiting: deque[SayAsked] = deque()

    def ask(self, event: SayAsked) -> None:
        """`go_on` begins it, now or later; one that nothing interrupts may be asked for over the caller's words."""
        if not event.at_once:
            self._waiting.append(event)
            return
        if self._agent.has_floor:
            self._agent.cancel("asked")
        if event.interruptible:
            self._waiting.appendleft(event)
        else:
            self._caller.hold()
            self._begin(event)

    def go_on(self, now: float) -> None:
        """Something happened. The caller's waiting words come first, then the program's next text."""
        self._caller.floor_free(now)
        if self._waiting and self._agent.reply is None and self._caller.turn is None:
            self._begin(self._waiting.popleft())

    def _begin(self, event: SayAsked) -> None:
        self._agent.speak(-event.say, event.text, interruptible=event.interruptible)
