"""The agent as an object: configure it, hook into its calls, serve it or hold a call over any transport."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from voice_agent.api.events import CallEvent
from voice_agent.config import Given, Source
from voice_agent.errors import ConfigError, VoiceAgentError
from voice_agent.plugins import check_engine

if TYPE_CHECKING:
    from voice_agent.api.call import Call
    from voice_agent.api.hooks import Hook, Hooks
    from voice_agent.app import Own
    from voice_agent.engines.ports import LanguageModel, SpeechToText, TextToSpeech
    from voice_agent.session.factory import SessionFactory
    from voice_agent.settings import Settings
    from voice_agent.transports.ports import Transport

E = TypeVar("E", bound=CallEvent)


class Agent:
    """A voice agent. It loads nothing before it is served or holds a call.

        agent = Agent(prompt="You are a florist.", greeting="Flowers, hello?", profile="small")

    `prompt` is what the agent is told to be, `voice` the name or file of a voice. `llm`, `stt` and `tts` may be an
    engine of your own, an object that fits its Protocol in `voice_agent.engines.ports`, or a text as in the setting
    of that name: a file, a model's name, a plugin ("package.module:make"). The agent warms such an engine up and closes
    it; one engine belongs to one agent. Any other setting is a keyword too (`voice-agent config show` lists them).
    What is not given here comes from the environment, the TOML file `config`, or the defaults, in this order.

    Raises ConfigError for a setting that does not exist or an impossible value.
    """

    def __init__(
        self,
        prompt: str | None = None,
        *,
        greeting: str | None = None,
        voice: str | None = None,
        llm: LanguageModel | str | None = None,
        stt: SpeechToText | str | None = None,
        tts: TextToSpeech | str | None = None,
        config: str | Path | None = None,
        **settings: Any,
    ) -> None:
        if voice is not None and tts is not None:
            raise ConfigError(
                "Agent(voice=…, tts=…): give one of the two; a voice is the setting tts by its name or file"
            )
        engines = {"llm": llm, "stt": stt, "tts": voice if tts is None else tts}
        self._engines = {role: engine for role, engine in engines.items() if not isinstance(engine, str | None)}
        for role, engine in self._engines.items():
            check_engine(role, engine, f"Agent({role}=…)")
        given: dict[str, object] = {
            "system_prompt": prompt,
            "greeting": greeting,
            **{role: engine for role, engine in engines.items() if isinstance(engine, str)},
            **settings,
        }
        written = {name: Given(value, f"Agent({name}=…)") for name, value in given.items()}
        self._source = Source.of(written, os.environ, Path(config) if config is not None else None)
        self._settings = self._source.load()
        self._hooks: Hooks | None = None
        self._opened = contextlib.AsyncExitStack()
        self._factory: SessionFactory | None = None
        self._opening = asyncio.Lock()
        self._serving = False

    @property
    def settings(self) -> Settings:
        """What is in force, from all sources."""
        return self._settings

    def on(self, *kinds: type[E]) -> Callable[[Hook[E]], Hook[E]]:
        """Have a function called with every event of these kinds: `@agent.on(TurnEnded)`, or `agent.on(TurnEnded)(f)`.

        It gets the call and the event, and may be a plain or an async function; a plain one must be quick, because all
        calls wait for it. One hook gets a call's events one after the other, in order; an async hook that waits (for
        `call.say`, say) holds up nothing but itself, up to 256 events. An exception in it is logged and ends nothing.
        After the end of a call its hooks have 2 seconds to finish. Hooks count from the next call on.
        """
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, CallEvent)):
                raise TypeError(f"on() takes kinds of CallEvent such as TurnEnded, not {kind!r}")
        if not kinds:
            raise TypeError("on() needs a kind of event; on(CallEvent) hears everything")

        def register(hook: Hook[E]) -> Hook[E]:
            self._hooked().add(kinds, hook)
            return hook

        return register

    def run(self) -> int:
        """Serve the page and calls until Ctrl-C or SIGTERM, as `voice-agent serve` does; the exit code.

        For the main thread of a program that has no event loop running. Raises VoiceAgentError with a text for people.
        """
        from voice_agent.app import serve

        with self._exclusively():
            return serve(self._settings, self._source, self._own())

    async def serve(self, stop: asyncio.Event | None = None) -> None:
        """The same within a running loop: until `stop` is set, or the task is cancelled. Signals stay yours.

        Raises VoiceAgentError with a text for people.
        """
        from voice_agent.app import serve_until

        with self._exclusively():
            await serve_until(stop or asyncio.Event(), asyncio.Event(), self._settings, self._source, self._own())

    async def call(self, transport: Transport) -> Call:
        """Hold a call over a transport (`voice_agent.transports.ports.Transport`) until it ends; returns it then.

        The first call loads the engines, which takes seconds; `async with agent:` does it beforehand and closes them at
        the end, otherwise `close` must. Any number of calls may go on at once, within the setting `max_sessions` if the
        language model is ours. Cancelling ends the call. The transport is closed in any case. Raises VoiceAgentError.
        """
        try:
            factory = await self._open()
            session = factory.build(secrets.token_urlsafe(16), transport)
        except BaseException:
            await transport.close("error")
            raise
        hooks = self._hooked()
        call = hooks.call(session.id)
        await session.run()
        await hooks.finish()
        return call

    async def close(self) -> None:
        """Close the engines that calls have used. Safe to call twice."""
        self._factory = None
        await self._opened.aclose()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> SessionFactory:
        from voice_agent.app import open_calls

        if self._serving:
            raise VoiceAgentError("this agent is being served; hold calls over a transport with another Agent")
        async with self._opening:
            if self._factory is None:
                self._factory = await self._opened.enter_async_context(open_calls(self._settings, self._own()))
            return self._factory

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        if self._serving or self._factory is not None:
            raise VoiceAgentError("this agent is at work already: close() it first, or serve another Agent")
        self._serving = True
        try:
            yield
        finally:
            self._serving = False

    def _hooked(self) -> Hooks:
        from voice_agent.api.hooks import Hooks

        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def _own(self) -> Own:
        from voice_agent.app import Own

        hooks = self._hooked()
        return Own(self._engines, hooks.attend, hooks.finish)
