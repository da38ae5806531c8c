"""Recognition with Whisper (CTranslate2 through faster-whisper), the encoder window cut to the speech.

`WhisperModel.transcribe` always encodes 30 s. A call's utterances last a few seconds, so this engine drives the
model's pieces itself: features of only as much audio as there is, one greedy pass, at most one repair pass.
"""

from __future__ import annotations

import asyncio
import threading
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
from voice_agent.engines.whisper_guard import Evidence, clean_transcript, has_echo, has_words, is_loop, loudest_dbfs
from voice_agent.engines.worker import Worker
from voice_agent.errors import EngineError

FILES = ("model.bin", "config.json", "tokenizer.json")
"""What a model folder must hold; without its tokenizer the library would ask a model hub for one."""

LONGEST = 30 * ENGINE_RATE
SHORTEST_WINDOW = 8 * ENGINE_RATE
SHORT_CLIP = 2 * ENGINE_RATE
SHORT_CLIP_WINDOW = 10 * ENGINE_RATE
"""A shorter encoder window saves time but makes the decoder say things twice, above all single words after the half
second of silence that comes before every utterance: of 66 spoken letters and digits behind such silence, 27 were
doubled with a window of 8 s, 9 with 10 s, 3 with 12 s and none with 16 s. Doubled words are noticed and repaired with a
wide window, which costs time; so clips that are likely to need it get 10 s at once. Longer clips (45 recordings, 273
words) had as many errors with 8 s (50) as with 10 s (49)."""
REPAIR_WINDOW = 16 * ENGINE_RATE
"""Where something was doubled after all, this window tells an echo of the decoder from a word said twice."""
SILENCE_AFTER = ENGINE_RATE // 2
"""Samples of silence after the speech, so that the last word does not end at the edge."""

TOKENS_PER_SECOND = 12
TOKEN_MARGIN = 24
"""Fast speech has about 6 tokens per second: the bound only ends loops."""
PROMPT_TOKENS = 100
"""Tokens of `hint` that are kept, the last ones."""

SILENT_BELOW = -60.0
"""dBFS; quieter audio is not even recognised."""
MIN_LOG_PROBABILITY = -1.0
REPAIR_TEMPERATURE = 0.4
HINT_NO_SPEECH = 0.2
HINT_LOG_PROBABILITY = -0.7
"""Where it may be noise, the hint alone makes its own words likely: decode once more without it and judge that."""
SURE_OF_LANGUAGE = 0.5


@dataclass(frozen=True, slots=True)
class _Decoded:
    text: str
    log_probability: float
    no_speech: float


class WhisperRecogniser:
    """Multilingual and English-only models; an English-only one ignores the language asked for."""

    def __init__(
        self, folder: Path, threads: int = 1, gate: CpuGate | None = None, fallback_language: str = "en", lanes: int = 1
    ) -> None:
        """Load `folder` with int8 weights. Never uses the network.

        `lanes` recognitions run side by side, with one thread each for the decoder: its steps are too small to share
        (measured on two cores: 50 ms with one thread, 120 ms with two). The encoder has `threads` threads (105 ms with
        one, 73 ms with two), from a second copy of the weights if that is more than one.
        `fallback_language` is taken where detection was asked for and is unsure. Raises EngineError `load`.
        """
        self._loaded = _load(folder, 1, lanes)
        self._model: ctranslate2.models.Whisper = self._loaded.model
        self._encoder = self._model if threads == 1 else _load(folder, threads, 1).model
        self._fallback_language = fallback_language
        self._languages: frozenset[str] = frozenset(self._loaded.supported_languages)
        self._suppressed = list(get_suppressed_tokens(self._tokenizer("en"), [-1]))
        self._worker = Worker("whisper", threads=lanes, gate=gate)

    async def transcribe(self, samples: Pcm16, *, language: str | None = None, hint: str = "") -> Transcript:
        if samples.size > LONGEST:
            raise EngineError("whisper", "too_long", f"{samples.size / ENGINE_RATE:.1f} s of audio; at most 30 s")
        if language is not None and self._model.is_multilingual and language not in self._languages:
            raise EngineError("whisper", "language", f"{language!r} is not a language this model knows")
        cancelled = threading.Event()
        try:
            return await self._worker.run(self._transcribe, samples.copy(), language, hint, cancelled)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def warm_up(self) -> None:
        noise = np.random.default_rng(0).integers(-3000, 3000, ENGINE_RATE, dtype=np.int16)
        await self.transcribe(noise, language="en")

    async def close(self) -> None:
        await self._worker.close_async()

    def _tokenizer(self, language: str) -> Tokenizer:
        return Tokenizer(self._loaded.hf_tokenizer, self._model.is_multilingual, task="transcribe", language=language)

    def _transcribe(self, samples: Pcm16, language: str | None, hint: str, cancelled: threading.Event) -> Transcript:
        loudness = loudest_dbfs(samples)
        if loudness < SILENT_BELOW:
            return Transcript(text="", language=language, no_speech=1.0)
        shortest = SHORT_CLIP_WINDOW if samples.size < SHORT_CLIP else SHORTEST_WINDOW
        window = min(max(samples.size + SILENCE_AFTER, shortest), LONGEST)
        encoded = self._encode(samples, window)
        if cancelled.is_set():
            return Transcript("")
        spoken = self._language(encoded, language)
        tokenizer = self._tokenizer(spoken)
        seconds = samples.size / ENGINE_RATE
        decoded = self._decode(encoded, tokenizer, hint, seconds)
        if hint and (decoded.no_speech > HINT_NO_SPEECH or decoded.log_probability < HINT_LOG_PROBABILITY):
            decoded = self._decode(encoded, tokenizer, "", seconds)
        if _needs_repair(decoded):
            decoded = self._repair(decoded, samples, window, encoded, tokenizer)
        text = clean_transcript(
            Evidence(decoded.text, decoded.no_speech, decoded.log_probability, seconds, loudness, hint)
        )
        # Noise has no language, whatever the detection made of it.
        return Transcript(text, spoken if text else language, decoded.no_speech, decoded.log_probability)

    def _encode(self, samples: Pcm16, window: int) -> ctranslate2.StorageView:
        """The encoder's output for the samples and as much silence after them as fills the window."""
        audio: NDArray[np.float32] = np.zeros(window, np.float32)
        audio[: samples.size] = samples.astype(np.float32) / 32768.0
        features = self._loaded.feature_extractor(audio, padding=0).astype(np.float32)
        # The encoder halves the frame rate; an odd number of frames would leave half a step.
        features = features[np.newaxis, :, : features.shape[1] // 2 * 2]
        return self._encoder.encode(ctranslate2.StorageView.from_array(np.ascontiguousarray(features)))

    def _language(self, encoded: ctranslate2.StorageView, asked: str | None) -> str:
        if not self._model.is_multilingual:
            return "en"
        if asked is not None:
            return asked
        token, probability = self._model.detect_language(encoded)[0][0]
        return token[2:-2] if probability >= SURE_OF_LANGUAGE else self._fallback_language

    def _repair(
        self,
        first: _Decoded,
        samples: Pcm16,
        window: int,
        encoded: ctranslate2.StorageView,
        tokenizer: Tokenizer,
    ) -> _Decoded:
        """A second and last attempt, with a wider window (or, where it is wide already, with some chance in it).

        The hint is left out: text from before is what loops feed on.
        """
        seconds = samples.size / ENGINE_RATE
        if window < REPAIR_WINDOW:
            second = self._decode(self._encode(samples, REPAIR_WINDOW), tokenizer, "", seconds)
            trusted = has_echo(first.text)
        else:
            second = self._decode(encoded, tokenizer, "", seconds, REPAIR_TEMPERATURE)
            trusted = False
        if is_loop(first.text) != is_loop(second.text):
            return first if is_loop(second.text) else second
        return second if trusted or second.log_probability > first.log_probability else first

    def _decode(
        self,
        encoded: ctranslate2.StorageView,
        tokenizer: Tokenizer,
        hint: str,
        seconds: float,
        temperature: float = 0.0,
    ) -> _Decoded:
        """Greedy, or sampled at a temperature; the length of the audio bounds the number of tokens."""
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


def _load(folder: Path, threads: int, lanes: int) -> WhisperModel:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise EngineError("whisper", "load", f"{folder} lacks {', '.join(missing)}: not a CTranslate2 Whisper model")
    try:
        return WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads,
            num_workers=lanes,
            local_files_only=True,
        )
    except Exception as error:
        raise EngineError("whisper", "load", f"the model in {folder} is broken or cut off: {error}") from error


def _needs_repair(decoded: _Decoded) -> bool:
    if not has_words(decoded.text):
        return False
    unlikely = decoded.log_probability < MIN_LOG_PROBABILITY
    if unlikely and decoded.no_speech > 0.4:
        # Noise. A second attempt would only find other words in it.
        return False
    return unlikely or has_echo(decoded.text) or is_loop(decoded.text)
