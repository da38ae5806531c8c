"""From a script's turns to sound: 48 kHz mono, trimmed to what is heard."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from voice_agent.audio.levels import block_levels, quietest
from voice_agent.audio.resample import resample
from voice_agent.bench.ear import BLOCK, RATE, THRESHOLD_DB, speech_bounds
from voice_agent.bench.script import Turn
from voice_agent.engines.ports import Pcm16, TextToSpeech
from voice_agent.engines.speech import synthesize
from voice_agent.errors import ConfigError

PEAK = 0.6
"""Loudest sample of a spoken line, of full scale: a voice close to a headset."""
MIDDLE = (0.25, 0.75)
"""Where a line may be widened, as shares of its length."""
_FADE = RATE // 200
_AUDIBLE = 328
"""-40 dBFS: a peak below is the resampler's rounding noise, not a voice."""


async def speak(turn: Turn, voice: TextToSpeech | None) -> Pcm16:
    """The turn's line as it will be played; a recording needs no voice. Raises ConfigError if there is no sound."""
    if turn.wav is not None:
        samples = read_audio(turn.wav)
    else:
        if voice is None:
            raise ConfigError(f"turn {turn.id}: no voice to say {turn.say!r} with")
        speech = await synthesize(voice, turn.say, speed=turn.speed)
        samples = at_peak(resample(speech.samples, speech.rate, RATE))
    start, end = speech_bounds(samples)
    if start == end:
        what = f"the recording {turn.wav}" if turn.wav is not None else repr(turn.say)
        raise ConfigError(f"turn {turn.id}: {what} has nothing louder than {THRESHOLD_DB:g} dBFS in it")
    line = samples[start:end]
    return widened(line, turn.pause) if turn.pause else line


def read_audio(path: Path) -> Pcm16:
    """Any file with sound that FFmpeg knows, as 48 kHz mono. Raises ConfigError."""
    pieces: list[Pcm16] = []
    try:
        with av.open(str(path)) as container:
            resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
            for frame in container.decode(audio=0):
                pieces += [_pcm(part) for part in resampler.resample(frame)]
            pieces += [_pcm(part) for part in resampler.resample(None)]
    except (OSError, ValueError, IndexError, av.FFmpegError) as error:
        raise ConfigError(f"cannot read recording {path}: {error}") from error
    return np.concatenate([np.zeros(0, np.int16), *pieces])


def _pcm(frame: av.AudioFrame) -> Pcm16:
    return frame.to_ndarray().reshape(-1).astype(np.int16, copy=False)


def at_peak(samples: Pcm16) -> Pcm16:
    loudest = int(np.max(np.abs(samples.astype(np.int32)), initial=0))
    if loudest < _AUDIBLE:
        return samples
    scaled: Pcm16 = np.rint(samples.astype(np.float32) * (PEAK * 32767.0 / loudest)).astype(np.int16)
    return scaled


def widened(line: Pcm16, pause: float) -> Pcm16:
    """The line with the quietest spot of its middle made `pause` seconds of silence, what was quiet there included."""
    low, high = (round(share * len(line)) // BLOCK * BLOCK for share in MIDDLE)
    spot = low + quietest(line[low:high], BLOCK)
    loud = [level > THRESHOLD_DB for level in block_levels(line, BLOCK)]
    first = last = min(spot // BLOCK, len(loud) - 1)
    while first > 0 and not loud[first - 1]:
        first -= 1
    while last < len(loud) and not loud[last]:
        last += 1
    before, after = line[: max(first * BLOCK, 0)].copy(), line[last * BLOCK :].copy()
    if first >= last:  # nothing is quiet there: cut the sound itself
        before, after = line[:spot].copy(), line[spot:].copy()
    fade = min(_FADE, len(before), len(after))
    ramp = np.linspace(1.0, 0.0, fade)
    before[len(before) - fade :] = np.rint(before[len(before) - fade :] * ramp)
    after[:fade] = np.rint(after[:fade] * ramp[::-1])
    return np.concatenate([before, np.zeros(round(pause * RATE), np.int16), after])
