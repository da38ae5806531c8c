"""A voice agent on your own machine, as a library.

    from voice_agent import Agent, Call, TurnEnded

    agent = Agent(prompt="You sell apples. Answer in one sentence.", greeting="Apples, hello?")

    @agent.on(TurnEnded)
    def log(call: Call, event: TurnEnded) -> None:
        print("the caller said", event.text)

    agent.run()  # answers calls at http://127.0.0.1:8080 until Ctrl-C

What stands in `__all__` is the public interface. So are `voice_agent.engines.ports` and `voice_agent.transports.ports`:
what an engine or a transport of your own has to do. Everything else may change with any release.

Names are imported when they are first used, so that `import voice_agent` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voice_agent.api.agent import Agent
    from voice_agent.api.call import Call, Message, Said
    from voice_agent.api.events import (
        CallBegan,
        CallEnded,
        CallEvent,
        PartialTranscript,
        Problem,
        ReplyEnded,
        TurnEnded,
        TurnReported,
    )
    from voice_agent.errors import ConfigError, EngineError, ModelError, TransportClosed, VoiceAgentError

_HOMES = {
    "voice_agent.api.agent": "Agent",
    "voice_agent.api.call": "Call Message Said",
    "voice_agent.api.events": (
        "CallEvent CallBegan PartialTranscript TurnEnded ReplyEnded TurnReported Problem CallEnded"
    ),
    "voice_agent.errors": "VoiceAgentError ConfigError ModelError EngineError TransportClosed",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Agent",
    "Call",
    "CallBegan",
    "CallEnded",
    "CallEvent",
    "ConfigError",
    "EngineError",
    "Message",
    "ModelError",
    "PartialTranscript",
    "Problem",
    "ReplyEnded",
    "Said",
    "TransportClosed",
    "TurnEnded",
    "TurnReported",
    "VoiceAgentError",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
