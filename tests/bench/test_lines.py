from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pytest

from tests.bench.sounds import RATE, silence, tone
from voice_agent.audio.levels import block_levels
from voice_agent.bench.ear import BLOCK, THRESHOLD_DB
from voice_agent.bench.lines import PEAK, read_audio, speak, widened
from voice_agent.bench.script import Turn, When
from voice_agent.engines.ports import Pcm16, Speech
from voice_agent.errors import ConfigError

NOW = When("line")


class Voice:
    """Says every text as a tone of one second at 24 kHz, with silence around it."""

    def __init__(self) -> None:
        self.speeds: list[float] = []

    async def stream(self, text: str, *, speed: float = 1.0) -> AsyncGenerator[Speech, None]:
        self.speeds.append(speed)
        around = silence(0.1)[::2]
        samples = np.concatenate([around, tone(1.0, level=0.1)[::2], around])
        yield Speech(samples if text != "…" else around, 24_000, (), exact=False)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


def quiet_seconds(samples: Pcm16) -> float:
    return sum(level <= THRESHOLD_DB for level in block_levels(samples, BLOCK)) * BLOCK / RATE


def write_wav(path: Path, samples: Pcm16, rate: int, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(samples, channels).tobytes())
    return path


def test_a_spoken_line_is_trimmed_and_loud() -> None:
    voice = Voice()
    line = asyncio.run(speak(Turn("a", NOW, say="Hello.", speed=1.2), voice))
    assert voice.speeds == [1.2]
    assert len(line) / RATE == pytest.approx(1.0, abs=0.021)
    assert np.max(np.abs(line)) == pytest.approx(PEAK * 32767, rel=0.02)


def test_a_pause_takes_the_place_of_what_was_quiet() -> None:
    line = np.concatenate([tone(1.0), silence(0.2), tone(0.8)])
    made = widened(line, 0.7)
    assert len(made) / RATE == pytest.approx(2.5)
    # The ramps at the cut make one more block quiet at most.
    assert quiet_seconds(made) == pytest.approx(0.7, abs=0.011)


def test_a_line_without_a_quiet_spot_is_cut_in_its_middle() -> None:
    line = tone(2.0)
    made = widened(line, 0.5)
    assert len(made) == len(line) + RATE // 2
    assert quiet_seconds(made[: RATE // 2]) == 0
    assert quiet_seconds(made) == pytest.approx(0.5, abs=0.021)


def test_silence_outside_the_middle_is_left_alone() -> None:
    line = np.concatenate([tone(0.2), silence(0.1), tone(1.0), silence(0.05), tone(0.65)])
    made = widened(line, 0.5)
    assert len(made) / RATE == pytest.approx(2.0 + 0.45)
    assert np.array_equal(made[: round(1.2 * RATE)], line[: round(1.2 * RATE)])


@pytest.mark.parametrize(("rate", "channels"), [(48_000, 1), (16_000, 2), (8_000, 1)])
def test_recordings_of_any_rate(tmp_path: Path, rate: int, channels: int) -> None:
    sound = np.concatenate([silence(0.3), tone(0.5), silence(0.2)])[:: RATE // rate]
    path = write_wav(tmp_path / "a.wav", sound, rate, channels)
    assert len(read_audio(path)) == pytest.approx(RATE, abs=BLOCK)
    line = asyncio.run(speak(Turn("a", NOW, wav=path), None))
    assert len(line) / RATE == pytest.approx(0.5, abs=0.021)


def test_lines_that_cannot_be_said(tmp_path: Path) -> None:
    text = tmp_path / "text.wav"
    text.write_text("no sound")
    mute = write_wav(tmp_path / "mute.wav", silence(0.5), RATE)
    for turn, message in (
        (Turn("a", NOW, wav=text), "cannot read recording"),
        (Turn("a", NOW, wav=tmp_path / "none.wav"), "cannot read recording"),
        (Turn("a", NOW, wav=mute), "nothing louder than"),
        (Turn("a", NOW, say="…"), "nothing louder than"),
    ):
        with pytest.raises(ConfigError, match=message):
            asyncio.run(speak(turn, Voice()))
