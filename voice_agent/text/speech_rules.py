"""The rules that make text speakable, in the order in which they must run: marks first, then signs, then tidying."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence

from voice_agent.text.abbreviations import starts_sentence
from voice_agent.text.rewriting import Part, Rewriting
from voice_agent.text.spoken_words import ABBREVIATIONS, SpokenWords, words_of


def _rule(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


_LINES = re.MULTILINE

# Markup: (pattern, what stays). Every repetition is bounded or followed by something it cannot match, so that no text
# makes a pattern slow.
_MARKUP: tuple[tuple[re.Pattern[str], tuple[Part, ...]], ...] = (
    (_rule(r"<!--.{0,2000}?-->", re.DOTALL), ()),
    (_rule(r"<((?:https?://|mailto:)?[^\s<>@]{1,200}@[^\s<>]{1,200}|https?://[^\s<>]+)>"), (1,)),
    (_rule(r"</?(?:a|b|i|u|s|em|strong|span|code|sub|sup|small|mark|kbd)(?:\s[^<>]{0,500})?/?>", re.I), ()),
    (_rule(r"</?[A-Za-z][\w-]{0,30}(?:\s[^<>]{0,500})?/?>"), (" ",)),
    (_rule(r"^[ \t]*\[[^\]\n]{1,100}\]:[ \t]*\S+[^\n]*$", _LINES), ()),
    (_rule(r"!?\[([^\[\]\n]{1,500})\]\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)"), (1,)),
    (_rule(r"!?\[([^\[\]\n]{1,500})\]\(\S*\Z"), (1,)),
    (_rule(r"!?\[([^\[\]\n]{1,500})\]\[[^\[\]\n]{0,100}\]"), (1,)),
    (_rule(r"\[\^[^\[\]\n]{1,50}\]|(?<=\S)\[\d{1,3}\]"), ()),
    (_rule(r"^[ \t]{0,3}#{1,6}[ \t]+|[ \t]+#+[ \t]*$", _LINES), ()),
    (_rule(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", _LINES), ()),
    (_rule(r"^[ \t]*\|?[ \t:-]*-[ \t:-]*\|[ \t|:-]*$", _LINES), ()),
    (_rule(r"^[ \t]*(?:>[ \t]?)+", _LINES), ()),
    (_rule(r"^[ \t]*[-*+\u2022\u25e6\u25aa\u2023][ \t]+(?:\[[ xX]\][ \t]+)?", _LINES), ()),
    (_rule(r"^[ \t]*(\d{1,3})[.)][ \t]+(?=\S)", _LINES), (1, ", ")),
    (_rule(r"^[ \t]*\|[ \t]*", _LINES), ()),
    (_rule(r"[ \t]*\|[ \t]*$", _LINES), (",",)),
    (_rule(r"[ \t]*\|+[ \t]*"), (", ",)),
    (_rule(r"`+"), ()),
    (_rule(r"(?<!\S):[a-z0-9_+-]{2,40}:(?!\S)"), ()),
    (_rule(r"(?<!\S)[:;=]['-]?[)(DPp](?!\w)"), ()),
)

_DOMAIN_ENDS = (
    "com|org|net|edu|gov|info|biz|dev|app|shop|online|io|ai|co|tv|me|eu|uk|us|de|at|ch|fr|es|it|pt|nl|be|se|no|dk|fi|pl"
    "|cz|ie|ca|au|nz|in|jp|cn|kr|br|mx|ar"
)
_EMAIL = _rule(r"(?:mailto:)?\b([\w.+-]{1,64})@((?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24})\b")
_URL = _rule(r"(?:(?:https?|ftp)://|\bwww\.)[^\s<>\"\u201d]*[^\s<>\"\u201d.,;:!?)\]}'*_\u2026]")
_DOMAIN = _rule(rf"(?<![\w@./-])((?:[A-Za-z0-9-]{{1,63}}\.){{1,4}}(?:{_DOMAIN_ENDS}))(?:/[^\s,;!?)]*[\w/])?(?![\w@-])")

_SIGNS_OF = {"$": "USD", "US$": "USD", "\u20ac": "EUR", "\u00a3": "GBP"}
_AMOUNT = r"(\d{1,15}(?:[.,]\d{1,15}){0,8})"
_SCALE = r"(?:[ \u00a0]?(k|thousand|million|billion|trillion|bn|m)\b)?"
_MONEY = _rule(rf"(-|\u2212)?(US\$|\$|\u20ac|\u00a3|\b(?:USD|EUR|GBP)[ \u00a0]?)[ \u00a0]?{_AMOUNT}{_SCALE}")
_MONEY_AFTER = _rule(rf"(?<![\w.,])(-|\u2212)?{_AMOUNT}{_SCALE}[ \u00a0]?(\$|\u20ac|\u00a3|(?:USD|EUR|GBP)\b)")
_SCALE_WORDS = {"k": "thousand", "m": "million", "bn": "billion"}

_ENTITY = _rule(r"&(?:[A-Za-z]{2,10}|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_ABBREVIATION = _rule(r"\b((?:[^\W\d_]\.){1,4}[^\W\d_]|[^\W\d_]{1,6})\.(?=([^\w]*)(\w*))")

_SPACES = _rule(r"[ \t\n\r\f\v]+")
_DROPPED = _rule("[\ufe0e\ufe0f\u20e3]+")
_BRACKET_OPEN = _rule(r"[ \t]*[(\uff08][ \t]*")
_BRACKET_CLOSE = _rule(r"[ \t]*[)\uff09]")

# Tidying: runs of marks that removals leave behind.
_TIDY: tuple[tuple[re.Pattern[str], tuple[Part, ...]], ...] = (
    (_rule(r"[\s\u00a0\u2007\u202f]+"), (" ",)),
    (_rule(r"\A +| +\Z"), ()),
    (_rule(r" (?=[,.;:!?])"), ()),
    (_rule(r"\A[\s,.;:!?\u2014\u2013-]+(?!\d)"), ()),
    (_rule(r"[,;:](?=[,;:.!?])"), ()),
    (_rule(r"(?<=[.!?])[,;:]+"), ()),
    (_rule(r"\.(?=[!?])|(?<=[!?])\.+"), ()),
    (_rule(r"!+(?=\?)|(?<=\?)[!?]+|(?<=!)!+"), ()),
    (_rule(r"\A +| +\Z"), ()),
)


def apply_rules(text: Rewriting, language: str) -> None:
    """Rewrite `text`, code fences already gone, into what a voice of this language can say."""
    words = words_of(language)
    text.rewrite(_ENTITY, lambda match: (html.unescape(match[0]),))
    for pattern, parts in _MARKUP:
        text.replace(pattern, *parts)
    text.replace(_SPACES, " ")
    text.rewrite(_EMAIL, lambda match: (f" {_address(match[1], words)} {words.at} {_address(match[2], words)} ",))
    text.rewrite(_URL, lambda match: (f" {_spoken_link(match[0], words)} ",))
    text.rewrite(_DOMAIN, lambda match: (_address(match[1], words),))
    text.rewrite(_MONEY, lambda match: (_spoken_money(match[2], match[3], match[4], match[1], words),))
    text.rewrite(_MONEY_AFTER, lambda match: (_spoken_money(match[4], match[2], match[3], match[1], words),))
    _abbreviations(text, language.replace("_", "-").split("-")[0].casefold())
    _signs(text, words)
    _punctuation(text)
    for pattern, parts in _TIDY:
        text.replace(pattern, *parts)


def _address(name: str, words: SpokenWords) -> str:
    signs = {".": words.dot, "-": words.dash, "_": words.underscore, "+": words.plus}
    return " ".join(signs.get(piece, piece) for piece in re.findall(r"[.+_-]|[^.+_-]+", name))


def _spoken_link(url: str, words: SpokenWords) -> str:
    """The name of a site where it is short enough to be understood, else only that there is a link."""
    host = re.sub(r"\A[a-z]+://", "", url).removeprefix("www.")
    host = re.split(r"[/?#]", host)[0]
    simple = len(host) <= 30 and re.fullmatch(r"(?:[A-Za-z0-9-]+\.){1,3}[A-Za-z]{2,24}", host)
    return _address(host, words) if simple else words.link


def _spoken_money(sign: str, amount: str, scale: str | None, minus: str | None, words: SpokenWords) -> str:
    code = _SIGNS_OF.get(sign.strip(), sign.strip())
    one, many = words.currencies[code]
    lead = f"{words.minus} " if minus else ""
    if scale:
        return f"{lead}{amount} {_SCALE_WORDS.get(scale, scale)} {many}"
    # Two figures after the last mark are hundredths; three are thousands in some countries: left to the voice.
    whole, _, hundredths = amount.replace(",", ".").rpartition(".")
    if not whole or len(hundredths) != 2:
        return f"{lead}{amount} {one if amount == '1' else many}"
    whole = amount[: len(whole)]
    unit = one if whole == "1" else many
    cent = (words.pence if code == "GBP" else words.cents)[hundredths != "01"]
    if hundredths == "00":
        return f"{lead}{whole} {unit}"
    if whole == "0":
        return f"{lead}{int(hundredths)} {cent}"
    return f"{lead}{whole} {unit} " + (f"{hundredths[1]} {cent}" if hundredths[0] == "0" else hundredths)


def _abbreviations(text: Rewriting, language: str) -> None:
    full = ABBREVIATIONS.get(language, {})

    def expand(match: re.Match[str]) -> Sequence[Part] | None:
        word, between, following = match[1], match[2], match[3]
        # Its full stop may also be that of the sentence.
        stop = "." if (not following and not between.strip()) or starts_sentence(following) else ""
        if word in full:
            return (full[word], stop)
        if language == "en" and word == "St":
            return ("Saint",) if between == " " and following[:1].isupper() and not stop else ("Street", stop)
        if language == "en" and word == "No" and following[:1].isdigit():
            return ("number",)
        if len(word) == 1:
            return None if stop or not (word.isupper() and following[:1].isupper()) else (word,)
        return (" ".join(word.split(".")), stop) if "." in word else None

    text.rewrite(_ABBREVIATION, expand)


def _signs(text: Rewriting, words: SpokenWords) -> None:
    for pattern, parts in (
        (_rule(r"(?<=\d)\s?%|(?<=\w)\s?%"), (f" {words.percent}",)),
        (_rule(r"\s*&\s*"), (f" {words.and_} ",)),
        (_rule(r"\s?\u00b0\s?C\b"), (f" {words.degrees} Celsius",)),
        (_rule(r"\s?\u00b0\s?F\b"), (f" {words.degrees} Fahrenheit",)),
        (_rule(r"\s?\u00b0"), (f" {words.degrees}",)),
        (_rule(r"(?<=\d)[ ]?[*\u00d7][ ]?(?=\d)"), (f" {words.times} ",)),
        (_rule(r"(?<=\w)\s?\+\s?(?=\w)|(?<!\S)\+(?=\d)"), (f" {words.plus} ",)),
        (_rule(r"\s?=\s?(?=[\w-])"), (f" {words.equals} ",)),
        (_rule(r"\s<\s(?=[\w-])"), (f" {words.less} ",)),
        (_rule(r"\s>\s(?=[\w-])"), (f" {words.greater} ",)),
        (_rule(r"(?<!\w)(?:#|\u2116)\s?(?=\d)"), (f"{words.number} ",)),
        (_rule(r"(?<=\d)\u2013(?=\d)"), (f" {words.to} ",)),
        (_rule(r"(?<![\w.])\u2212(?=\d)"), ("-",)),
        (_rule(r"(?<!\S)@(?=\w)|(?<=\s)@(?=\s)"), (f"{words.at} ",)),
        (_rule(r"(?<=[^\W\d_])[/_](?=[^\W\d_])"), (" ",)),
    ):
        text.replace(pattern, *parts)


def _punctuation(text: Rewriting) -> None:
    for pattern, parts in (
        (_rule(r"\s*[\u2014\u2013]+\s*|\s+-{1,3}\s+|-{2,}"), (", ",)),
        (_rule(r"(?:(?:\.[ ]?){2,}\.?|\u2026+)\s*\Z"), (".",)),
        (_rule(r"(?:\.[ ]?){2,}\.?|\u2026+"), (", ",)),
        (_rule(r"(?<=\w)\((e?s)\)"), (1,)),
        (_BRACKET_OPEN, (", ",)),
        (_rule(r"[\s)\uff09]*[)\uff09][\s)\uff09]*\Z"), ()),
        (_BRACKET_CLOSE, (",",)),
        (_rule(r"(?<=\w)[\u2019\u02bc](?=\w)"), ("'",)),
        (_rule(r"(?<!\w)['\u2018\u2019\u201a]+|['\u2018\u2019]+(?!\w)"), ()),
        (_rule(r"[\"\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\u300a\u300b]+"), ()),
        (_rule(r"[*_~\\#^<>{}\[\]=+|$%&@\u20ac\u00a3\u3010\u3011]+"), ()),
        (_DROPPED, ()),
    ):
        text.replace(pattern, *parts)
    text.rewrite(_rule(r"[^\w\s.,;:!?'/-]+"), _without_symbols)


def _without_symbols(match: re.Match[str]) -> Sequence[Part] | None:
    """Drop emoji, arrows and other symbols; keep punctuation and combining marks of any script."""
    kept = "".join(char for char in match[0] if unicodedata.category(char)[0] in "LMNPZ")
    return None if kept == match[0] else (kept,)
