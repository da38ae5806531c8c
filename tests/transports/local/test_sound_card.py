"""The sound card against a made-up PortAudio: what is heard, what is played, what is said when it fails."""

from __future__ import annotations

import asyncio
import sys
import time
import types
from typing import Any

import numpy as np
import pytest

from voice_agent.errors import VoiceAgentError
from voice_agent.transports.local.sound_card import (
    AHEAD,
    FRAME,
    UNSEEN_FRAMES,
    SoundCardCall,
    check_devices,
    load_sounddevice,
)


class PortAudioError(Exception):
    pass


class _Stream:
    def __init__(self, made: list[_Stream], kind: str, options: dict[str, Any]) -> None:
        self.kind, self.options, self.running, self.closed = kind, options, False, False
        made.append(self)

    def start(self) -> None:
        if self.options["device"] == "broken":
            raise PortAudioError("Invalid device")
        self.running = True

    def close(self) -> None:
        self.closed = True


def _check(device: str | None, **_: Any) -> None:
    if device == "broken":
        raise PortAudioError("Invalid device")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[_Stream]:
    made: list[_Stream] = []
    module = types.ModuleType("sounddevice")
    module.PortAudioError = PortAudioError  # type: ignore[attr-defined]
    module.RawInputStream = lambda **options: _Stream(made, "in", options)  # type: ignore[attr-defined]
    module.RawOutputStream = lambda **options: _Stream(made, "out", options)  # type: ignore[attr-defined]
    module.check_input_settings = module.check_output_settings = _check  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    return made


def _call() -> SoundCardCall:
    return SoundCardCall(time.monotonic, lambda message: None)


def test_what_the_microphone_gives_is_heard_at_16_khz(streams: list[_Stream]) -> None:
    async def listen() -> tuple[int, set[int]]:
        call = _call()
        call.open()
        microphone = next(stream for stream in streams if stream.kind == "in")
        for _ in range(5):
            microphone.options["callback"](np.full(FRAME, 1000, np.int16).tobytes(), FRAME, None, None)
        await asyncio.sleep(0)
        await call.close("done")
        samples = np.concatenate([frame.samples async for frame in call.frames()])
        return len(samples), set(samples[100:].tolist())

    heard, values = asyncio.run(listen())
    assert heard == pytest.approx(5 * 320, abs=20)
    assert values <= {999, 1000, 1001}
    assert all(stream.closed for stream in streams)


def test_the_card_takes_the_playout_in_order_and_sets_the_pace(streams: list[_Stream]) -> None:
    async def play() -> tuple[list[int], dict[str, float]]:
        call = _call()
        call.playout.open_reply(1, held=False)
        call.playout.append(1, 0, np.arange(1, 10 * FRAME + 1, dtype=np.int16))
        call.open()
        assert call.playout.played == AHEAD * FRAME, "no further ahead than needed"
        loudspeaker = next(stream for stream in streams if stream.kind == "out")
        taken: list[int] = []
        for _ in range(8):
            data = bytearray(2 * FRAME)
            loudspeaker.options["callback"](memoryview(data), FRAME, None, None)
            await asyncio.sleep(0)
            taken += np.frombuffer(data, np.int16).tolist()
        assert call.playout.played == (8 + AHEAD) * FRAME - FRAME
        await call.close("done")
        return taken, call.statistics()

    taken, statistics = asyncio.run(play())
    assert taken == list(range(1, 8 * FRAME + 1))
    assert statistics["gaps"] == 0


def test_a_loop_that_is_late_is_a_gap_of_silence(streams: list[_Stream]) -> None:
    async def play() -> tuple[bytes, float]:
        call = _call()
        call.open()
        loudspeaker = next(stream for stream in streams if stream.kind == "out")
        data = bytearray(b"x" * 2 * FRAME)
        for _ in range(AHEAD + 1):
            loudspeaker.options["callback"](memoryview(data), FRAME, None, None)
        await call.close("done")
        return bytes(data), call.statistics()["gaps"]

    assert asyncio.run(play()) == (bytes(2 * FRAME), 1.0)


def test_a_card_without_pace_cannot_flood_the_loop(streams: list[_Stream], monkeypatch: pytest.MonkeyPatch) -> None:
    async def listen() -> tuple[int, int, float]:
        loop, asked = asyncio.get_running_loop(), 0
        schedule = loop.call_soon_threadsafe

        def count(*call: Any) -> Any:
            nonlocal asked
            asked += 1
            return schedule(*call)

        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        call = _call()
        call.open()
        microphone = next(stream for stream in streams if stream.kind == "in")
        for _ in range(1000):
            microphone.options["callback"](bytes(2 * FRAME), FRAME, None, None)
        looks = asked
        await asyncio.sleep(0)
        await call.close("done")
        return looks, len([frame async for frame in call.frames()]), call.statistics()["overruns"]

    assert asyncio.run(listen()) == (1, UNSEEN_FRAMES, 1000 - UNSEEN_FRAMES)


@pytest.mark.parametrize(("devices", "missing"), [(("broken", None), "microphone"), ((None, "broken"), "loudspeaker")])
def test_a_device_that_cannot_be_opened_is_named_and_nothing_stays_open(
    streams: list[_Stream], devices: tuple[str | None, str | None], missing: str
) -> None:
    async def call() -> None:
        with pytest.raises(VoiceAgentError, match=f"no {missing} can be opened .*Invalid device.*--wav"):
            _call().open(*devices)

    asyncio.run(call())
    assert all(stream.closed for stream in streams)


def test_devices_are_checked_without_being_opened(streams: list[_Stream]) -> None:
    check_devices(None, "good")
    for devices, missing in ((("broken", None), "microphone"), ((None, "broken"), "loudspeaker")):
        with pytest.raises(VoiceAgentError, match=f"no {missing} can be opened"):
            check_devices(*devices)
    assert streams == []


def test_a_missing_package_or_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(VoiceAgentError, match=r"pip install 'voice-agent\[talk\]'"):
        load_sounddevice()

    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(VoiceAgentError, match="apt install libportaudio2"):
        load_sounddevice()
