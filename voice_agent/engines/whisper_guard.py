"""Decides whether what Whisper wrote was said. Pure: numbers and text in, text out.

Whisper always answers something. On silence and noise that is a phrase its training data ended with ("Thank you for
watching"), on odd audio the same words again and again. No single sign tells those from speech, so several are read
together. The thresholds come from listening to both models shipped here on recordings: of 60 single spoken letters
and digits and 60 sentences the mean log probability is above -1.1 nearly always, of 40 noises below it nearly always.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

import numpy as np

from voice_agent.engines.ports import ENGINE_RATE, Pcm16


@dataclass(frozen=True, slots=True)
class Evidence:
    """One decoded text and what is known about the audio it came from."""

    text: str
    no_speech: float
    """0..1, the model's own belief that there was no speech."""
    log_probability: float
    """Mean natural-log probability per token."""
    seconds: float
    loudness: float
    """dBFS of the loudest 100 ms."""
    hint: str = ""
    """The text the decoder was primed with; on noise it likes to say it again."""


MAX_IN_A_ROW = 3
"""Equal n-grams in a row that may pass."""
MAX_DIGITS_IN_A_ROW = 8
"""The same for numbers: 5, 5, 5, 5 is a telephone number."""
LONGEST_GRAM = 12
LOOP_COMPRESSION = 2.4
"""Text that compresses better than this repeats itself; sentences reach 1.7."""

QUIET = -45.0
MAX_WORDS_PER_SECOND = 6.0

SIGN_OFFS = (
    "amara.org", "for watching", "for listening", "for viewing", "subscribe", "see you in the next video", "zdf",
    "dimatorzok", "продолжение следует", "ご視聴ありがとうございました", "시청해 주셔서 감사합니다", "mbc 뉴스",
    "字幕by", "点赞", "sous-titres", "sous-titrage", "untertitel", "sottotitoli", "legendas", "subtítulos",
    "napisy stworzone", "ondertiteld", "altyazı", "subtitles by", "captions by", "transcribed by", "transcription by",
)  # fmt: skip
"""Parts of credits and farewells of videos, in lower case. A caller may say them, but has to say them clearly."""
FILLERS = frozenset((
    "you", "thank you", "thank you very much", "thank you so much", "thanks", "bye", "bye bye", "okay", "ok", "oh",
    "so", "the", "i", "uh", "um", "hmm", "hm", "ah", "yeah", "i'm going to go to the bathroom", "i'm sorry",
    "silence", "music", "applause", "blank audio",
))  # fmt: skip
"""What both models write for noise. Callers say most of these too, so they fall only when in doubt."""

_TAGS = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]+\*|<[^>]*>|[♩♪♫♬#]+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HYPHEN_LOOP = re.compile(r"\b([^\W\d]+)(?:-\1){3,}\b", re.IGNORECASE)
# Scripts without spaces: a run of the same characters, digits and ASCII excluded (100000 is a number).
_UNSPACED_LOOP = re.compile(r"([^\s\d\x00-\x7f]{1,20}?)\1{3,}")


def clean_transcript(evidence: Evidence) -> str:
    """The text that may be believed, without noise tags and loops; empty if nobody seems to have spoken."""
    text = collapse_loops(_without_tags(evidence.text))
    words = _words(text)
    if not words or _doubtful(evidence) or _too_fast(words, evidence.seconds):
        return ""
    if _phantom(text, words, evidence):
        return ""
    return text


def collapse_loops(text: str) -> str:
    """Words that come more than three times in a row are said once; "no no no" and "very very good" stay."""
    tokens = _HYPHEN_LOOP.sub(r"\1", _UNSPACED_LOOP.sub(r"\1", text)).split()
    keys = [_key(token) for token in tokens]
    # Taking one run away can bring two others together, so until nothing changes; each round shortens the text.
    before = -1
    while before != len(tokens):
        before = len(tokens)
        for length in range(1, LONGEST_GRAM + 1):
            tokens, keys = _collapse(tokens, keys, length)
    return " ".join(tokens)


def is_loop(text: str) -> bool:
    return compression_ratio(text) > LOOP_COMPRESSION or collapse_loops(text) != " ".join(text.split())


def has_words(text: str) -> bool:
    return bool(_words(_without_tags(text)))


def has_echo(text: str) -> bool:
    """Whether some words come twice in a row: said so, or the first sign of a loop."""
    keys = [_key(token) for token in text.split()]
    return any(
        keys[start : start + length] == keys[start + length : start + 2 * length]
        for length in range(1, LONGEST_GRAM + 1)
        for start in range(len(keys) - 2 * length + 1)
    )


def compression_ratio(text: str) -> float:
    """Bytes of the text over bytes of it compressed; 0 for no text."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0


def loudest_dbfs(samples: Pcm16) -> float:
    """Level of the loudest 100 ms of 16 kHz audio, in dB of full scale (RMS); -120 for none."""
    step = ENGINE_RATE // 10
    power = 0.0
    for start in range(0, samples.size, step):
        part = samples[start : start + step].astype(np.float64) / 32768.0
        power = max(power, float(np.mean(part * part)))
    return 10.0 * float(np.log10(power + 1e-12))


def _without_tags(text: str) -> str:
    return " ".join(_TAGS.sub(" ", text).split())


def _key(token: str) -> str:
    """What makes two tokens the same word: letters and digits in one case; punctuation alone stands for itself."""
    return "".join(_WORD.findall(token.casefold())) or token


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("’", "'"))


def _collapse(tokens: list[str], keys: list[str], length: int) -> tuple[list[str], list[str]]:
    """Cut runs of equal `length`-grams that are too long down to one."""
    kept: list[int] = []
    position = 0
    while position < len(tokens):
        gram = keys[position : position + length]
        repeats = 1
        while keys[position + repeats * length : position + (repeats + 1) * length] == gram:
            repeats += 1
        allowed = MAX_DIGITS_IN_A_ROW if all(key.isdigit() for key in gram) else MAX_IN_A_ROW
        if repeats > allowed:
            kept.extend(range(position, position + length))
            position += repeats * length
        else:
            kept.append(position)
            position += 1
    return [tokens[index] for index in kept], [keys[index] for index in kept]


def _doubtful(evidence: Evidence) -> bool:
    """Whether the numbers alone say that nobody spoke."""
    unlikely, silent = evidence.log_probability, evidence.no_speech
    return (
        unlikely < -1.3
        or (silent > 0.4 and unlikely < -1.0)
        or (silent > 0.75 and unlikely < -0.7)
        or (evidence.loudness < QUIET and unlikely < -0.7)
    )


def _too_fast(words: list[str], seconds: float) -> bool:
    return len(words) > 2 + MAX_WORDS_PER_SECOND * seconds


def _phantom(text: str, words: list[str], evidence: Evidence) -> bool:
    lowered = text.casefold()
    if any(part in lowered for part in SIGN_OFFS):
        return evidence.no_speech > 0.2 or evidence.log_probability < -0.4
    said = " ".join(words)
    if said in FILLERS or (said and said in " ".join(_words(evidence.hint))):
        return evidence.no_speech > 0.5 or evidence.log_probability < -0.9
    return False
