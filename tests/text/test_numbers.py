"""Case D11 of the public bug reports: one number, however the recogniser writes it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.text.numbers import digits_at_end, digits_of


@pytest.mark.parametrize(
    "text",
    [
        "7415", "seven four one five", "74 15", "Seven, four, one, five.", "7, 4, 1, 5.", "7-4-1-5", "7,415", "74-15?",
        "seventy four fifteen", "seventy-four fifteen", "seven um four one uh five", "seven four... one five",
    ],
)  # fmt: skip
def test_the_same_number(text: str) -> None:
    assert digits_of(text) == "7415"


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("double four oh one", "4401"),
        ("0049 30 12", "00493012"),
        ("triple seven", "777"),
        ("double 4", "44"),
        ("forty", "40"),
        ("forty zero", "400"),
        ("\u0667\u0664", "74"),
        ("one", "1"),
    ],
)
def test_other_numbers(text: str, digits: str) -> None:
    assert digits_of(text) == digits


@pytest.mark.parametrize(
    "text",
    [
        "one or two of them", "", "...", "um", "3.14", "two hundred", "I have one", "no one", "seven apples", "oh no",
        "double", "double trouble", "$5", "10:30", "Hello",
    ],
)  # fmt: skip
def test_prose_is_left_alone(text: str) -> None:
    assert digits_of(text) is None


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("My number is zero six three, four one.", "06341"),
        ("it's 7 4 1", "741"),
        ("a table for two", "2"),
        ("one or two of them", ""),
        ("one or two", "2"),
        ("", ""),
        ("My number is, um", ""),
    ],
)
def test_digits_at_the_end(text: str, digits: str) -> None:
    assert digits_at_end(text) == digits


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from("0123456789"), min_size=1, max_size=16), st.sampled_from(["", " ", ", ", "-"]))
def test_digits_come_back_as_figures_and_as_words(digits: list[str], between: str) -> None:
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    assert digits_of(between.join(digits)) == "".join(digits)
    assert digits_of((between or " ").join(names[int(digit)] for digit in digits)) == "".join(digits)
