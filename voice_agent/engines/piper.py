"""Speech with a Piper voice (VITS as ONNX, phonemes from espeak-ng), with the time of every word."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from piper import PiperConfig, PiperVoice, SynthesisConfig
from piper.voice import AudioChunk

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.onnx_session import open_session
from voice_agent.engines.ports import Pcm16, Speech, WordTime
from voice_agent.engines.word_times import Phoneme, estimate_words, match_words, speakable, words_of
from voice_agent.engines.worker import Worker
from voice_agent.errors import EngineError

Floats = NDArray[np.float32]

SLOWEST, FASTEST = 0.25, 4.0
LEAD = 0.005
"""Seconds of silence kept before the first sound; Piper puts about 40 ms there."""
TAIL = 0.030
FADE = 0.003
AUDIBLE_BELOW_PEAK = 50.0
"""Decibels under the loudest sample where sound begins. Piper's silence lies 90 dB under it, an "f" at 50."""


class PiperSpeaker:
    """Any Piper voice: PATH.onnx with PATH.onnx.json beside it."""

    def __init__(self, path: Path, gate: CpuGate | None = None, threads: int = 2) -> None:
        """Raises EngineError `load`."""
        self._voice = _load(path, threads)
        self._worker = Worker("piper", gate=gate)
        self._pronounce = lru_cache(maxsize=8192)(self._pronounce_word)

    async def synthesize(self, text: str, *, speed: float = 1.0) -> Speech:
        if not SLOWEST <= speed <= FASTEST:
            raise EngineError("piper", "speed", f"speed {speed} is outside {SLOWEST} to {FASTEST}")
        if not speakable(text):
            return self._nothing(text)
        cancelled = threading.Event()
        try:
            return await self._worker.run(self._speak, text, speed, cancelled)
        finally:
            cancelled.set()

    async def warm_up(self) -> None:
        await self.synthesize("Hello there.")

    async def close(self) -> None:
        await self._worker.close_async()

    @property
    def _rate(self) -> int:
        return self._voice.config.sample_rate

    def _nothing(self, text: str) -> Speech:
        words = tuple(WordTime(start, end, 0, 0) for start, end in words_of(text))
        return Speech(np.zeros(0, np.int16), self._rate, words, exact=True)

    def _speak(self, text: str, speed: float, cancelled: threading.Event) -> Speech:
        config = SynthesisConfig(length_scale=self._voice.config.length_scale / speed, normalize_audio=False)
        sound: list[Floats] = []
        phonemes: list[Phoneme] | None = []
        position = 0
        for chunk in self._voice.synthesize(_spoken(text), config, include_alignments=True):
            if cancelled.is_set():
                return self._nothing(text)
            aligned = list(_phonemes(chunk, position))
            phonemes = phonemes + aligned if phonemes is not None and aligned else None
            sound.append(chunk.audio_float_array)
            position += chunk.audio_float_array.size
        audio = np.concatenate(sound) if sound else np.zeros(0, np.float32)
        start, end = sounding(audio, self._rate)
        if start == end:
            return self._nothing(text)
        words = match_words(text, phonemes, self._pronounce) if phonemes else None
        times = words if words is not None else estimate_words(text, start, end)
        return Speech(
            _to_pcm(audio[start:end], self._rate), self._rate, _shifted(times, start, end), exact=words is not None
        )

    def _pronounce_word(self, word: str) -> str:
        return " ".join("".join(sentence) for sentence in self._voice.phonemize(_spoken(word)))


def sounding(audio: Floats, rate: int) -> tuple[int, int]:
    """Half-open range of samples from just before the first to just after the last sound; (0, 0) if there is none."""
    step = rate // 500
    frames = audio.size // step
    if not frames:
        return 0, 0
    power = np.sqrt(np.mean(audio[: frames * step].reshape(frames, step) ** 2, axis=1))
    peak = float(np.max(np.abs(audio)))
    loud = np.flatnonzero(power > max(peak * 10 ** (-AUDIBLE_BELOW_PEAK / 20), 1e-5))
    if not loud.size:
        return 0, 0
    start = int(loud[0]) * step - int(LEAD * rate)
    end = (int(loud[-1]) + 1) * step + int(TAIL * rate)
    return max(start, 0), min(end, audio.size)


def _to_pcm(audio: Floats, rate: int) -> Pcm16:
    """16 bits, with short ramps at both ends: clauses are put together without a click."""
    ramp = np.linspace(0.0, 1.0, min(int(FADE * rate), audio.size // 2), dtype=np.float32)
    shaped = audio.copy()
    shaped[: ramp.size] *= ramp
    shaped[shaped.size - ramp.size :] *= ramp[::-1]
    return np.clip(np.round(shaped * 32767.0), -32768, 32767).astype(np.int16)


def _shifted(words: tuple[WordTime, ...], start: int, end: int) -> tuple[WordTime, ...]:
    """The times counted from `start`, within what is left of the sound."""
    return tuple(
        WordTime(
            word.start_char,
            word.end_char,
            min(max(word.start, start), end) - start,
            min(max(word.end, start), end) - start,
        )
        for word in words
    )


def _spoken(text: str) -> str:
    """The text as Piper may read it: of the same length, on one line, without its [[raw phoneme]] marks."""
    unmarked = text.replace("[[", "  ").replace("]]", "  ")
    return "".join(character if character.isprintable() else " " for character in unmarked)


def _phonemes(chunk: AudioChunk, position: int) -> Iterator[Phoneme]:
    """The phonemes of one sentence that begins at sample `position`; none where the voice cannot tell."""
    alignments = chunk.phoneme_alignments or []
    if sum(int(alignment.num_samples) for alignment in alignments) != chunk.audio_float_array.size:
        return
    marks = (0, len(alignments) - 1)
    for index, alignment in enumerate(alignments):
        end = position + int(alignment.num_samples)
        yield Phoneme("" if index in marks else alignment.phoneme, position, end)
        position = end


def _load(path: Path, threads: int) -> PiperVoice:
    config_path = path.with_name(path.name + ".json")
    if not config_path.is_file():
        raise EngineError("piper", "load", f"there is no voice description {config_path}")
    try:
        config = PiperConfig.from_dict(json.loads(config_path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError("piper", "load", f"{config_path} does not describe a Piper voice: {error!r}") from error
    session = open_session("piper", path, threads, ("input", "input_lengths", "scales"), _with_durations(path))
    return PiperVoice(session=session, config=config)


def _with_durations(path: Path) -> bytes | None:
    """The model with its phoneme durations as a second output; None if they cannot be had (or it has them already).

    Without them the words' times are estimated.
    """
    if not path.is_file():
        return None
    try:
        import onnx
        from piper.patch_voice_with_alignment import add_alignment_output
    except ImportError:
        return None
    try:
        model = onnx.load(str(path))
    except Exception as error:
        raise EngineError(
            "piper", "load", f"{path} is not a usable ONNX model (broken or cut off?): {error}"
        ) from error
    try:
        add_alignment_output(model)
    except ValueError:
        return None
    content: bytes = model.SerializeToString()
    return content
