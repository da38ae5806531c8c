"""Do these words sound finished? The part of turn taking that can be read off the text.

Silence alone does not end a turn: people pause before the number, the name, the thing they want. A recogniser closes
also cut-off speech with a full stop or a question mark, so the last words count, and final marks only where they show
that the end is open. To cut a caller off is worse than to wait, so what may go on scores low, and doubt scores 0.5.

Measured on 244 utterances said by a Piper voice and read by Whisper base: 123 cut-off ones ended in "." (70), "?" (22),
"..." (21) or nothing (10), 121 complete ones in "." (72), "?" (45), "!" (1) or nothing (3), never in "...". From those
transcripts 13 of the cut-off ones score 0.7 or more, nearly all because the word they broke off on was misheard
("I bought a jacket from your" as "from you"): words are one signal among several.
"""

from __future__ import annotations

from voice_agent.text.endings import Completeness, ends_open, words_in
from voice_agent.text.english_endings import judge_english
from voice_agent.text.numbers import digits_of
from voice_agent.text.open_words import OTHER, OpenWords
from voice_agent.text.phrases import made_of

__all__ = ["Completeness", "completeness"]


def completeness(text: str, language: str = "en") -> Completeness:
    """How finished `text`, all that the caller has said in this turn so far, sounds. `language`: ISO 639-1 code."""
    stripped = text.strip()
    if not any(char.isalnum() for char in stripped):
        return Completeness(0.5, "nothing said")
    language = language.replace("_", "-").split("-")[0].casefold()
    if language == "en":
        return judge_english(stripped)
    if language in OTHER:
        return _by_short_lists(stripped, OTHER[language])
    if ends_open(stripped):
        return Completeness(0.15, "open mark")
    return Completeness(0.5, "unknown language")


def _by_short_lists(text: str, known: OpenWords) -> Completeness:
    words = words_in(text)
    open_mark = ends_open(text)
    if made_of(words[:8], known.answers.__contains__) and len(words) <= 8 and not text.endswith(","):
        return Completeness(0.95, "short answer")
    if open_mark:
        return Completeness(0.1, "open mark")
    if words[-1] in known.fillers:
        return Completeness(0.1, "filler")
    if words[-1] in known.open:
        return Completeness(0.15, f"ends on '{words[-1]}'")
    if digits_of(text) is not None and len(words) > 1:
        return Completeness(0.2, "digits")
    if len(words) >= 3 and words[0] in known.questions and text.rstrip("\"'").endswith("?"):
        return Completeness(0.85, "question")
    return Completeness(0.7 if text.endswith("?") else 0.5, "unsure")
