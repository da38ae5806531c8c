"""Holds one conversation without a server: loads the engines, builds the session a server would build, runs it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from voice_agent.core.agent_floor import Agent
from voice_agent.core.caller_floor import User
from voice_agent.core.conversation import Conversation
from voice_agent.engine_room import EngineRoom
from voice_agent.engines.ports import VoiceActivityModel
from voice_agent.modelstore import SCRIPTED, ModelStore, load_manifest, model_root
from voice_agent.session.factory import SessionFactory
from voice_agent.session.session import CallEngines, Session
from voice_agent.settings import Settings
from voice_agent.talk.counted import CountedVoiceActivity, counted_engines
from voice_agent.talk.fast_loop import FastLoop
from voice_agent.transports.local.caller_file import open_caller_file
from voice_agent.transports.local.file_call import FRAME, RATE, FileCall
from voice_agent.transports.local.sound_card import SoundCardCall, check_devices
from voice_agent.transports.local.stereo_file import StereoFile
from voice_agent.transports.ports import Transport

Tell = Callable[[dict[str, Any]], None]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FromFile:
    """The caller is a recording."""

    wav: Path
    out: Path | None = None
    fast: bool = False


@dataclass(frozen=True, slots=True)
class FromMicrophone:
    """The caller sits in front of this machine; None is the system's own device."""

    microphone: str | int | None = None
    loudspeaker: str | int | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Engines ready for a call."""

    activity: VoiceActivityModel
    engines: CallEngines


@dataclass(frozen=True, slots=True)
class Talked:
    """A conversation that is over."""

    session_id: str
    reason: str
    call_seconds: float
    """On the session clock."""
    wall_seconds: float
    """On the wall; less where waiting was skipped."""
    speech_gaps: int
    """Times the agent's speech ran dry in the middle."""
    turns: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    failed: bool
    """The call ended because something broke."""


class CallCounts:
    """`CallMetrics` of a single call."""

    def __init__(self) -> None:
        self.speech_gaps = 0
        self.errors: list[str] = []

    def turn_ended(self) -> None:
        """In the reports."""

    def barge_in(self) -> None:
        """In the reports."""

    def first_audio(self, voice_to_voice: float, stages: Mapping[str, float]) -> None:
        """In the reports."""

    def call_error(self, code: str) -> None:
        self.errors.append(code)

    def playout_starved(self) -> None:
        self.speech_gaps += 1

    def audio_dropped(self, frames: int) -> None:
        """A file is never read faster than the session listens, or it shows in the statistics."""

    def messages_dropped(self, count: int) -> None:
        """Messages are told, not queued."""


def talk(settings: Settings, plan: FromFile | FromMicrophone, tell: Tell, progress: Progress) -> Talked:
    """Hold the conversation and return its record. Ctrl-C and SIGTERM hang up. Raises VoiceAgentError.

    `tell` gets every message a client would get (docs/events.md).
    """
    threadpool_limits(limits=1, user_api="blas")  # as `app.serve` does, for the same reason
    fast = isinstance(plan, FromFile) and plan.fast
    with asyncio.Runner(loop_factory=FastLoop if fast else None) as runner:
        return runner.run(_talk(settings, plan, tell, progress))


async def _talk(settings: Settings, plan: FromFile | FromMicrophone, tell: Tell, progress: Progress) -> Talked:
    async with contextlib.AsyncExitStack() as stack:
        # What can be wrong with files and devices is said before the models are loaded.
        if isinstance(plan, FromFile):
            transport: FileCall | SoundCardCall = _open_file(plan, tell, stack)
        else:
            check_devices(plan.microphone, plan.loudspeaker)
            transport = SoundCardCall(time.monotonic, tell)
        stack.push_async_callback(transport.close, "error")  # no effect after the session has closed it
        loaded = await stack.enter_async_context(_loaded(settings, progress))
        if isinstance(plan, FromMicrophone):
            assert isinstance(transport, SoundCardCall)
            transport.open(plan.microphone, plan.loudspeaker)
        progress("talking (Ctrl-C hangs up)")
        return await hold_call(settings, transport, loaded)


def _open_file(plan: FromFile, tell: Tell, stack: contextlib.AsyncExitStack) -> FileCall:
    caller = stack.enter_context(open_caller_file(plan.wav, RATE, FRAME))
    recording = stack.enter_context(StereoFile(plan.out, RATE)) if plan.out else None
    return FileCall(caller, asyncio.get_running_loop().time, tell, recording)


@contextlib.asynccontextmanager
async def _loaded(settings: Settings, progress: Progress) -> AsyncIterator[Loaded]:
    """The engines these settings name, for one call; closed at the end."""
    alone = changed(settings, server=changed(settings.server, max_sessions=1))
    paths = ModelStore(model_root(settings.models), load_manifest()).resolve(settings.models)
    room = EngineRoom(alone, paths)
    try:
        await room.load(lambda waiting: progress(f"loading {waiting[0]} …") if waiting else None)
        yield Loaded(room.activity, room.for_calls())
    finally:
        await room.close()


async def hold_call(settings: Settings, transport: FileCall | SoundCardCall, loaded: Loaded) -> Talked:
    """One call from beginning to end, on the running loop. Raises VoiceAgentError if its files fail."""
    loop = asyncio.get_running_loop()
    activity, engines = loaded.activity, loaded.engines
    if isinstance(loop, FastLoop):
        activity = CountedVoiceActivity(activity, loop.busy)
        engines = counted_engines(engines, loop.busy, scripted=settings.models.llm == SCRIPTED)
    counts = CallCounts()
    factory = SessionFactory(settings, activity, engines, counts, clock=loop.time)
    session = factory.build(secrets.token_urlsafe(16), transport)
    if isinstance(transport, FileCall):
        transport.idle = lambda: _idle(session.conversation)
    began, wall = loop.time(), time.monotonic()
    with _hang_up_on_signals(loop, session):
        reason = await _run(session, transport)
    conversation = session.conversation
    return Talked(
        session.id,
        reason,
        loop.time() - began,
        time.monotonic() - wall,
        counts.speech_gaps,
        [report.as_dict() for report in conversation.reports],
        [
            {"role": message.role, "content": message.content, "interrupted": message.interrupted}
            for message in conversation.messages
            if message.role != "system"
        ],
        failed=reason == "error" or "internal" in counts.errors,
    )


async def _run(session: Session, transport: Transport) -> str:
    reason = await session.run()
    if isinstance(transport, FileCall) and transport.error is not None:
        raise transport.error
    return reason


def _idle(conversation: Conversation) -> bool:
    """Nobody speaks and nothing is owed."""
    return conversation.user is User.SILENT and conversation.agent is Agent.IDLE


@contextlib.contextmanager
def _hang_up_on_signals(loop: asyncio.AbstractEventLoop, session: Session) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, session.hang_up)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
