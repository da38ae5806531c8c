"""Recognition with Whisper (CTranslate2 through faster-whisper), the encoder window cut to the speech.

`WhisperModel.transcribe` always encodes 30 s. A call's utterances last a few seconds, so this engine drives the
model's pieces itself: features of only as much audio as there is, one greedy pass, at most one repair pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens
from numpy.typing import NDArray

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.ports import ENGINE_RATE, Pcm16, Transcript
from voice_agent.engines.whisper_guard import Evidence, clean_transcript, compression_ratio, is_loop, loudest_dbfs
from voice_agent.engines.worker import Worker
from voice_agent.errors import EngineError

FILES = ("model.bin", "config.json", "tokenizer.json")
"""What a model folder must hold; without its tokenizer the library would ask a model hub for one."""

LONGEST = 30 * ENGINE_RATE
SHORTEST_WINDOW = 8 * ENGINE_RATE
"""A shorter encoder window saves time but makes the decoder loop on some clips; with 8 s none of them did."""
SILENCE_AFTER = ENGINE_RATE // 2
"""Samples of silence after the speech, so that the last word does not end at the edge."""

TOKENS_PER_SECOND = 12
TOKEN_MARGIN = 24
"""Fast speech has about 6 tokens per second: the bound only ends loops."""
PROMPT_TOKENS = 100
"""Tokens of `hint` that are kept, the last ones."""

SILENT_BELOW = -60.0
"""dBFS; quieter audio is not even recognised."""
MAX_COMPRESSION = 2.4
MIN_LOG_PROBABILITY = -1.0
REPAIR_TEMPERATURE = 0.4
SURE_OF_LANGUAGE = 0.5


@dataclass(frozen=True, slots=True)
class _Decoded:
    text: str
    log_probability: float
    no_speech: float

    @property
    def loops(self) -> bool:
        return compression_ratio(self.text) > MAX_COMPRESSION or is_loop(self.text)


class WhisperRecogniser:
    """Multilingual and English-only models; an English-only one ignores the language asked for."""

    def __init__(
        self, folder: Path, threads: int = 2, gate: CpuGate | None = None, fallback_language: str = "en"
    ) -> None:
        """Load `folder` with int8 weights. Never uses the network.

        `fallback_language` is taken where detection was asked for and is unsure. Raises EngineError `load`.
        """
        self._loaded = _load(folder, threads)
        self._model: ctranslate2.models.Whisper = self._loaded.model
        self._fallback_language = fallback_language
        self._languages: frozenset[str] = frozenset(self._loaded.supported_languages)
        self._suppressed = list(get_suppressed_tokens(self._tokenizer("en"), [-1]))
        self._worker = Worker("whisper", gate=gate)

    async def transcribe(self, samples: Pcm16, *, language: str | None = None, hint: str = "") -> Transcript:
        if samples.size > LONGEST:
            raise EngineError("whisper", "too_long", f"{samples.size / ENGINE_RATE:.1f} s of audio; at most 30 s")
        if language is not None and self._model.is_multilingual and language not in self._languages:
            raise EngineError("whisper", "language", f"{language!r} is not a language this model knows")
        return await self._worker.run(self._transcribe, samples.copy(), language, hint)

    async def warm_up(self) -> None:
        noise = np.random.default_rng(0).integers(-3000, 3000, ENGINE_RATE, dtype=np.int16)
        await self.transcribe(noise, language="en")

    async def close(self) -> None:
        await self._worker.close_async()

    def _tokenizer(self, language: str) -> Tokenizer:
        return Tokenizer(self._loaded.hf_tokenizer, self._model.is_multilingual, task="transcribe", language=language)

    def _transcribe(self, samples: Pcm16, language: str | None, hint: str) -> Transcript:
        loudness = loudest_dbfs(samples)
        if loudness < SILENT_BELOW:
            return Transcript(text="", language=language, no_speech=1.0)
        encoded = self._encode(samples)
        language = self._language(encoded, language)
        seconds = samples.size / ENGINE_RATE
        decoded = self._decode(encoded, self._tokenizer(language), hint, seconds)
        text = clean_transcript(
            Evidence(decoded.text, decoded.no_speech, decoded.log_probability, seconds, loudness, hint)
        )
        return Transcript(text, language, decoded.no_speech, decoded.log_probability)

    def _encode(self, samples: Pcm16) -> ctranslate2.StorageView:
        window = min(max(samples.size + SILENCE_AFTER, SHORTEST_WINDOW), LONGEST)
        audio: NDArray[np.float32] = np.zeros(window, np.float32)
        audio[: samples.size] = samples.astype(np.float32) / 32768.0
        features = self._loaded.feature_extractor(audio, padding=0).astype(np.float32)
        # The encoder halves the frame rate; an odd number of frames would leave half a step.
        features = features[np.newaxis, :, : features.shape[1] // 2 * 2]
        return self._model.encode(ctranslate2.StorageView.from_array(np.ascontiguousarray(features)))

    def _language(self, encoded: ctranslate2.StorageView, asked: str | None) -> str:
        if not self._model.is_multilingual:
            return "en"
        if asked is not None:
            return asked
        token, probability = self._model.detect_language(encoded)[0][0]
        return token[2:-2] if probability >= SURE_OF_LANGUAGE else self._fallback_language

    def _decode(self, encoded: ctranslate2.StorageView, tokenizer: Tokenizer, hint: str, seconds: float) -> _Decoded:
        """Greedy; once more with some chance in it if the first attempt loops or is unlikely. The better one wins."""
        first = self._generate(encoded, tokenizer, hint, seconds, temperature=0.0)
        unlikely = first.log_probability < MIN_LOG_PROBABILITY
        if not first.loops and not unlikely:
            return first
        if unlikely and first.no_speech > 0.6:
            return first
        # The hint is left out: text before is what loops feed on.
        second = self._generate(encoded, tokenizer, "", seconds, temperature=REPAIR_TEMPERATURE)
        return max(first, second, key=lambda decoded: (not decoded.loops, decoded.log_probability))

    def _generate(
        self, encoded: ctranslate2.StorageView, tokenizer: Tokenizer, hint: str, seconds: float, temperature: float
    ) -> _Decoded:
        prompt = _prompt(tokenizer, hint)
        sampling: dict[str, Any] = {"sampling_topk": 0, "sampling_temperature": temperature} if temperature else {}
        (result,) = self._model.generate(
            encoded,
            [prompt],
            beam_size=1,
            max_length=len(prompt) + int(seconds * TOKENS_PER_SECOND) + TOKEN_MARGIN,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=self._suppressed,
            **sampling,
        )
        tokens = result.sequences_ids[0]
        # The score is the mean over the tokens; the end token, which was predicted too, is not among them.
        log_probability = result.scores[0] * len(tokens) / (len(tokens) + 1)
        return _Decoded(tokenizer.decode(tokens).strip(), log_probability, result.no_speech_prob)


def _prompt(tokenizer: Tokenizer, hint: str) -> list[int]:
    """Token ids: [previous text], start, language and task, no timestamps."""
    prompt: list[int] = []
    if hint.strip():
        prompt = [tokenizer.sot_prev, *tokenizer.encode(" " + hint.strip())[-PROMPT_TOKENS:]]
    return [*prompt, *tokenizer.sot_sequence, tokenizer.no_timestamps]


def _load(folder: Path, threads: int) -> WhisperModel:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise EngineError("whisper", "load", f"{folder} lacks {', '.join(missing)}: not a CTranslate2 Whisper model")
    try:
        return WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads, num_workers=1, local_files_only=True
        )
    except Exception as error:
        raise EngineError("whisper", "load", f"the model in {folder} is broken or cut off: {error}") from error
