"""`Agent`: its settings, calls over a transport of the test's, and the server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from examples.wav_call import WavTransport
from tests.session.rig import ScriptedModel
from voice_agent import Agent, Call, CallBegan, CallEnded, ConfigError, ReplyEnded, TurnEnded, VoiceAgentError
from voice_agent.engines.fakes import FakeSpeechToText, FakeTextToSpeech
from voice_agent.engines.ports import Pcm16

pytestmark = pytest.mark.usefixtures("weights")

SILENCE: Pcm16 = np.zeros(16_000, np.int16)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOICE_AGENT_CONFIG", raising=False)


class Model(ScriptedModel):
    def __init__(self, *answers: str) -> None:
        super().__init__(answers or ("Far away.",))
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


def agent(model: Model | None = None, **settings: Any) -> Agent:
    """Real ears, everything else made up."""
    return Agent(
        "Be brief.",
        llm=model or Model(),
        stt=FakeSpeechToText(["How far is the moon?"]),
        tts=FakeTextToSpeech(),
        **settings,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_settings_come_from_the_program_the_environment_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text('greeting = "from the file"\nspeed = 1.5\nmax_delay = 2.0\n')
    monkeypatch.setenv("VOICE_AGENT_SPEED", "1.25")
    monkeypatch.setenv("VOICE_AGENT_MAX_DELAY", "3.0")
    settings = Agent("Be brief.", voice="piper-joe", config=file, max_delay=1.0).settings
    assert settings.agent.system_prompt == "Be brief."
    assert settings.models.tts == "piper-joe"
    assert (settings.agent.greeting, settings.agent.speed, settings.turns.max_delay) == ("from the file", 1.25, 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_dealy": 1.0}, r"max_dealy \(Agent\(max_dealy=…\)\); did you mean max_delay"),
        ({"speed": 9}, r"speed \(Agent\(speed=…\)\): 9 is not allowed"),
        ({"llm": object()}, r"Agent\(llm=…\): object is no LanguageModel"),
        ({"tts": FakeTextToSpeech}, r"give an object of it: FakeTextToSpeech"),
        ({"voice": "a", "tts": "b"}, "give one of the two"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Agent(**settings)


@pytest.mark.parametrize("kind", [str, "TurnEnded", None])
def test_hooks_on_something_else_are_refused(kind: object) -> None:
    with pytest.raises(TypeError):
        agent().on(kind)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="hears everything"):
        agent().on()


def test_a_call_over_a_transport(spoken_question: Pcm16) -> None:
    model = Model("It is far away from here my friend.")
    phone = agent(model)
    heard: list[object] = []

    @phone.on(CallBegan, TurnEnded, ReplyEnded, CallEnded)
    def note(call: Call, event: object) -> None:
        call.data["events"] = call.data.get("events", 0) + 1
        heard.append(type(event))

    async def run() -> Call:
        async with phone:
            return await phone.call(WavTransport(spoken_question, patience=3.0))

    call = asyncio.run(run())
    assert [message.content for message in call.history] == [
        "Be brief.",
        "How far is the moon?",
        "It is far away from here my friend.",
    ]
    assert call.end_reason == "caller hung up"
    assert call.reports[0].voice_to_voice_ms is not None
    assert heard == [CallBegan, TurnEnded, ReplyEnded, CallEnded]
    assert call.data == {"events": 4}
    assert model.closed == 1
    assert model.forgotten == [call.id]


def test_calls_at_the_same_time_are_separate(spoken_question: Pcm16) -> None:
    async def run() -> list[Call]:
        async with agent() as phone:
            calls = await asyncio.gather(
                phone.call(WavTransport(spoken_question, patience=2.0)),
                phone.call(WavTransport(SILENCE, patience=1.0)),
            )
            return list(calls)

    spoken, silent = asyncio.run(run())
    assert spoken.id != silent.id
    assert len(spoken.history) == 3
    assert len(silent.history) == 1


def test_cancelling_ends_the_call_and_closes_the_transport() -> None:
    async def run() -> WavTransport:
        transport = WavTransport(SILENCE, patience=1000)
        async with agent() as phone:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await phone.call(transport)
            assert len(asyncio.all_tasks()) == 1
        return transport

    assert asyncio.run(run())._closed.is_set()


def test_an_engine_that_cannot_be_made_closes_the_transport() -> None:
    transport = WavTransport(SILENCE)
    with pytest.raises(ConfigError, match=r"llm = nowhere:make: importing nowhere failed"):
        asyncio.run(Agent(llm="nowhere:make").call(transport))
    assert transport._closed.is_set()


def test_it_serves_the_page_until_it_is_told_to_stop() -> None:
    model, port = Model(), free_port()

    async def run() -> tuple[str, int]:
        stop = asyncio.Event()
        phone = agent(model, port=port)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(phone.serve(stop))
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                page = await _ready(client, serving)
                offer = await client.post("/api/offer", json={"sdp": "nonsense", "type": "offer"})
            with pytest.raises(VoiceAgentError, match="at work already"):
                await phone.serve()
            with pytest.raises(VoiceAgentError, match="being served"):
                await phone.call(WavTransport(SILENCE))
            stop.set()
        return page, offer.status_code

    page, status = asyncio.run(run())
    assert "<title>" in page
    assert status == 400
    assert model.closed == 1


async def _ready(client: httpx.AsyncClient, serving: asyncio.Task[None]) -> str:
    """The page, once calls are taken."""
    while not serving.done():
        with contextlib.suppress(httpx.ConnectError):
            if (await client.get("/readyz")).status_code == 200:
                return (await client.get("/")).text
        await asyncio.sleep(0.05)
    raise AssertionError("the server stopped")


def test_cancelling_stops_the_server() -> None:
    model = Model()

    async def run() -> None:
        serving = asyncio.create_task(agent(model, port=free_port()).serve())
        await asyncio.sleep(0)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        assert serving.cancelled()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def test_a_server_that_cannot_begin_says_why() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(VoiceAgentError, match="is in use"):
            asyncio.run(agent(port=taken.getsockname()[1]).serve())
