"""Recordings of any kind become frames of 48 kHz mono."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voice_agent.engines.ports import Pcm16
from voice_agent.errors import VoiceAgentError
from voice_agent.transports.local.caller_file import open_caller_file


def _tone(rate: int, seconds: float = 0.5) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * 440 * np.arange(round(rate * seconds)) / rate)


def _read(path: Path) -> list[Pcm16]:
    with open_caller_file(path, 48_000, 960) as frames:
        return list(frames)


@pytest.mark.parametrize(
    ("rate", "channels", "subtype"),
    [
        (8_000, 1, "ULAW"),
        (8_000, 1, "ALAW"),
        (16_000, 1, "PCM_16"),
        (22_050, 1, "FLOAT"),
        (44_100, 2, "PCM_24"),
        (48_000, 1, "DOUBLE"),
        (48_000, 2, "PCM_U8"),
        (96_000, 4, "PCM_32"),
    ],
)
def test_every_rate_channel_count_and_format_is_heard_as_it_is(
    tmp_path: Path, rate: int, channels: int, subtype: str
) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([_tone(rate)] * channels, axis=1), rate, subtype=subtype)
    frames = _read(path)
    assert {(frame.dtype.name, frame.shape) for frame in frames} == {("int16", (960,))}
    sound = np.concatenate(frames).astype(np.float64)
    assert abs(len(sound) - 24_000) <= 960, "half a second"
    middle = sound[6_000:18_000]
    strength = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert np.argmax(strength) * 48_000 / len(middle) == pytest.approx(440, abs=5)
    assert np.sqrt(np.mean(middle**2)) / 32768 == pytest.approx(0.5 / np.sqrt(2), rel=0.1)


def test_the_last_frame_is_filled_with_silence(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.full(1000, 1000, np.int16), 48_000)
    frames = _read(path)
    assert len(frames) == 2
    assert np.concatenate(frames).tolist() == [1000] * 1000 + [0] * 920


@pytest.mark.parametrize("content", [b"", b"this is no sound at all", b"RIFF\0\0\0\0WAVE"])
def test_what_is_no_sound_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(VoiceAgentError, match=r"a\.wav"):
        _read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(VoiceAgentError, match=r"cannot read .*none\.wav: No such file"):
        _read(tmp_path / "none.wav")
