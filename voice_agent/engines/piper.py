"""Speech with a Piper voice (VITS as ONNX, phonemes from espeak-ng), with the time of every word.

The network itself is `piper_model`; here text becomes phonemes, sound loses its silent edges, words get their times.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from piper import PiperConfig, PiperVoice

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.piper_model import PiperModel, Uttered
from voice_agent.engines.ports import Speech, WordTime
from voice_agent.engines.speech_edges import SpeechEdges
from voice_agent.engines.word_times import Phoneme, estimate_words, match_words, speakable, words_of
from voice_agent.engines.worker import Worker
from voice_agent.errors import EngineError

SLOWEST, FASTEST = 0.25, 4.0
BEGIN, END, PAD = "^", "$", "_"
"""Piper's marks around and between phonemes."""


class PiperSpeaker:
    """Any Piper voice: PATH.onnx with PATH.onnx.json beside it."""

    def __init__(self, path: Path, gate: CpuGate | None = None, threads: int = 2) -> None:
        """Raises EngineError `load`."""
        config = _description(path)
        self.name = path.stem
        self._model = PiperModel(path, threads, config.hop_length)
        # Only its text half is used: its session would run the network whole.
        self._voice = PiperVoice(session=None, config=config)
        self._config = config
        self._worker = Worker("piper", gate=gate)
        self._pronounce = lru_cache(maxsize=8192)(self._pronounce_word)

    async def stream(self, text: str, *, speed: float = 1.0) -> AsyncGenerator[Speech, None]:
        if not SLOWEST <= speed <= FASTEST:
            raise EngineError("piper", "speed", f"speed {speed} is outside {SLOWEST} to {FASTEST}")
        if not speakable(text):
            yield self._nothing(text)
            return
        pieces = self._pieces(text, speed)
        # A job per piece: another call's clause gets its turn in between, and a closed stream asks for no more.
        while (piece := await self._worker.run(_next, pieces)) is not None:
            yield piece

    async def warm_up(self) -> None:
        async for _piece in self.stream("Hello there, nice to meet you."):
            pass

    async def close(self) -> None:
        await self._worker.close_async()

    @property
    def _rate(self) -> int:
        return self._config.sample_rate

    def _nothing(self, text: str) -> Speech:
        words = tuple(WordTime(start, end, 0, 0) for start, end in words_of(text))
        return Speech(np.zeros(0, np.int16), self._rate, words, exact=True)

    def _pieces(self, text: str, speed: float) -> Iterator[Speech]:
        """Runs on the worker's thread, from one piece to the next."""
        phonemes = [sentence for sentence in self._voice.phonemize(_spoken(text)) if sentence]
        uttered = [self._utter(sentence, speed) for sentence in phonemes]
        times, exact = self._word_times(text, phonemes, uttered)
        edges = SpeechEdges(self._rate)
        given = 0
        for sentence in uttered:
            for sound, is_end in self._model.sound(sentence):
                last = is_end and sentence is uttered[-1]
                samples = edges.push(sound, last=last)
                given += samples.size
                start = edges.start or 0
                done, times = _split_at(times, None if last else given + start)
                if samples.size or (done and given):
                    yield Speech(samples, self._rate, _shifted(done, start, given), exact)
        if not given:
            yield self._nothing(text)

    def _utter(self, phonemes: list[str], speed: float) -> Uttered:
        config = self._config
        speaker = config.default_speaker_id if config.num_speakers > 1 else None
        scales = (config.noise_scale, config.length_scale / speed, config.noise_w_scale)
        return self._model.utter(self._voice.phonemes_to_ids(phonemes), scales, speaker)

    def _word_times(
        self, text: str, phonemes: Sequence[list[str]], uttered: Sequence[Uttered]
    ) -> tuple[tuple[WordTime, ...], bool]:
        """Of all words, in untrimmed samples, and whether they are the voice's own."""
        spoken: list[Phoneme] | None = []
        position = 0
        for symbols, sentence in zip(phonemes, uttered, strict=True):
            aligned = self._aligned(symbols, sentence, position)
            spoken = spoken + aligned if spoken is not None and aligned is not None else None
            position += sentence.samples
        found = match_words(text, spoken, self._pronounce) if spoken else None
        return (found, True) if found is not None else (estimate_words(text, 0, position), False)

    def _aligned(self, symbols: list[str], sentence: Uttered, position: int) -> list[Phoneme] | None:
        """The sentence, which begins at sample `position`, phoneme by phoneme; None where the voice cannot tell."""
        ids, durations = self._config.phoneme_id_map, sentence.durations
        if durations is None or int(durations.sum()) != sentence.samples:
            return None
        # Every phoneme's ids are followed by padding, but for the last mark's.
        pad = len(ids.get(PAD, ()))
        counts = [len(ids[symbol]) + pad if symbol in ids else 0 for symbol in (BEGIN, *symbols)]
        counts.append(len(ids.get(END, ())))
        if sum(counts) != durations.size:
            return None
        ends = position + np.cumsum(durations)[np.cumsum(counts) - 1]
        starts = [position, *ends[:-1]]
        named = ["", *symbols, ""]
        return [Phoneme(name, int(a), int(b)) for name, a, b in zip(named, starts, ends, strict=True)]

    def _pronounce_word(self, word: str) -> str:
        return " ".join("".join(sentence) for sentence in self._voice.phonemize(_spoken(word)))


def _next(pieces: Iterator[Speech]) -> Speech | None:
    return next(pieces, None)


def _split_at(words: tuple[WordTime, ...], end: int | None) -> tuple[tuple[WordTime, ...], tuple[WordTime, ...]]:
    """The words over by sample `end` and those after them; all of them if it is None."""
    count = len(words) if end is None else next((i for i, word in enumerate(words) if word.end > end), len(words))
    return words[:count], words[count:]


def _shifted(words: tuple[WordTime, ...], start: int, length: int) -> tuple[WordTime, ...]:
    """The times counted from `start`, within what there is of the sound."""
    return tuple(
        WordTime(
            word.start_char,
            word.end_char,
            min(max(word.start - start, 0), length),
            min(max(word.end - start, 0), length),
        )
        for word in words
    )


def _spoken(text: str) -> str:
    """The text as Piper may read it: of the same length, on one line, without its [[raw phoneme]] marks."""
    unmarked = text.replace("[[", "  ").replace("]]", "  ")
    return "".join(character if character.isprintable() else " " for character in unmarked)


def _description(path: Path) -> PiperConfig:
    config_path = path.with_name(path.name + ".json")
    if not config_path.is_file():
        raise EngineError("piper", "load", f"there is no voice description {config_path}")
    try:
        return PiperConfig.from_dict(json.loads(config_path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError("piper", "load", f"{config_path} does not describe a Piper voice: {error!r}") from error
