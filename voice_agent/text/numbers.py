"""Digits as they are dictated: recognisers write the same number as figures, as words, or in groups."""

from __future__ import annotations

import re

_UNITS = {
    "zero": "0", "oh": "0", "o": "0", "nought": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5",
    "six": "6", "seven": "7", "eight": "8", "nine": "9",
}  # fmt: skip
_TEENS = {
    "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15", "sixteen": "16",
    "seventeen": "17", "eighteen": "18", "nineteen": "19",
}  # fmt: skip
_TENS = {
    "twenty": "2", "thirty": "3", "forty": "4", "fourty": "4", "fifty": "5", "sixty": "6", "seventy": "7",
    "eighty": "8", "ninety": "9",
}  # fmt: skip
_REPEATS = {"double": 2, "triple": 3}
_FILLERS = frozenset({"um", "uh", "er", "erm", "hmm"})

_PIECE = re.compile(r"\d+|[^\W\d_]+|[^\w\s]+|_+")
_JOINERS = frozenset({",", "-", ".", "\u2013", "...", "\u2026"})
_DECIMAL = re.compile(r"\d+\.\d+\W*")


def digits_of(text: str) -> str | None:
    """The digits of a text that is nothing but dictated digits ("7415", "seven four one five", "74 15"), else None.

    "double four" is 44, "seventy four fifteen" is 7415. Prose with a number in it, decimals ("3.14") and amounts
    ("two hundred") are not dictated digits.
    """
    if _DECIMAL.fullmatch(text.strip()):
        return None
    pieces = _PIECE.findall(text.casefold())
    digits = leading_digits(pieces)
    return digits[0] if digits[0] and digits[1] == len(pieces) else None


def digits_at_end(text: str) -> str:
    """The longest run of dictated digits that `text` ends with; empty if there is none."""
    pieces = _PIECE.findall(text.casefold())
    for first in range(len(pieces)):
        digits, used = leading_digits(pieces[first:])
        if digits and first + used == len(pieces) and pieces[first] not in _JOINERS | _FILLERS:
            return digits
    return ""


def leading_digits(pieces: list[str]) -> tuple[str, int]:
    """The digits that lower-case words, figures and marks begin with, and how many of them were used."""
    digits: list[str] = []
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        following = pieces[at + 1] if at + 1 < len(pieces) else ""
        if piece.isdecimal():
            digits.append(str(int(piece)).rjust(len(piece), "0"))
        elif piece in _UNITS:
            digits.append(_UNITS[piece])
        elif piece in _TEENS:
            digits.append(_TEENS[piece])
        elif piece in _TENS:
            tail = pieces[at + 2] if following == "-" and at + 2 < len(pieces) else following
            unit = _UNITS.get(tail, "0")
            digits.append(_TENS[piece] + unit)
            at += 0 if unit == "0" else 1 + (tail is not following)
        elif piece in _REPEATS and (following in _UNITS or (following.isdecimal() and len(following) == 1)):
            digits.append(_UNITS.get(following, following) * _REPEATS[piece])
            at += 1
        elif piece not in _JOINERS and piece not in _FILLERS and not (piece in ".?!" and at + 1 == len(pieces)):
            break
        at += 1
    return "".join(digits), at
