"""Cases E01, E13, C01, C03 and C08 of the public bug reports; the map from spoken words back to the original."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.text.clauses import ClauseSplitter
from voice_agent.text.speakable import SpeakableFilter, heard_prefix, speakable

E01 = "# Title\n**bold** and `x`\n- item\n> quote\n[label](https://e.org/a?b=1)\n```py\nprint(1)\n```"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (E01, "Title bold and x item quote label code omitted"),
        ("~~old~~ __new__ *and* _more_", "old new and more"),
        ("2. Stir\n- [x] done\n* * *\nEnd", "2, Stir done End"),
        ("| Day | Price |\n|:---|---:|\n| Monday | $5 |", "Day, Price, Monday, 5 dollars,"),
        ("![A cat](https://e.org/cat.png) sleeps[^1] here [2]", "A cat sleeps here 2"),
        ("See [the docs][1].\n[1]: https://example.org", "See the docs."),
        ("<b>Hi</b><br/>you &amp; me <!-- no -->", "Hi you and me"),
        ("Cut [label](https://exam", "Cut label"),
        # Addresses
        ("See https://www.example.org/a?b=1, thanks!", "See example dot org, thanks!"),
        ("See <https://example.org>.", "See example dot org."),
        ("At http://127.0.0.1:8080/x", "At link"),
        ("Try node.js or shop.example.org. Fine", "Try node.js or shop dot example dot org. Fine"),
        ("Write to jo@example.org.", "Write to jo at example dot org."),
        ("Write to <jo.b_c@my-shop.example.com>", "Write to jo dot b underscore c at my dash shop dot example dot com"),
        # Signs and money
        ("R&D is 5% of 20 %", "R and D is 5 percent of 20 percent"),
        ("It is $5.50, \u20ac1, \u00a32.05 or -$3", "It is 5 dollars 50, 1 euro, 2 pounds 5 pence or minus 3 dollars"),
        ("$0.99 $1,234,567.00 $2.5 million", "99 cents 1,234,567 dollars 2.5 million dollars"),
        ("1.000,50 \u20ac or 20 EUR or GBP 3", "1.000 euros 50 or 20 euros or 3 pounds"),
        ("3\u20135 days at 20 \u00b0C", "3 to 5 days at 20 degrees Celsius"),
        ("2 * 3 = 6 and 1 < 2", "2 times 3 equals 6 and 1 less than 2"),
        ("Room #5 at 10:30, 1,000 seats, pi 3.14, -4", "Room number 5 at 10:30, 1,000 seats, pi 3.14, -4"),
        # What a voice would take for the end of a sentence
        ("Dr. Smith, Mrs. Hill, e.g. at 9 a.m. sharp", "Doctor Smith, Missus Hill, for example at 9 a m sharp"),
        ("St. Paul is on Main St. He left the U.S.", "Saint Paul is on Main Street. He left the U S."),
        ("See No. 5. No. Never", "See number 5. No. Never"),
        # Symbols
        ("Great! \U0001f60a\u2615\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 Yes :-) :smile:", "Great! Yes"),
        ("(Try it.) Paris (the capital) is big", "Try it. Paris, the capital, is big"),
        ('"He said," \u2018yes\u2019 don\u2019t', "He said, yes don't"),
        ("well-known \u2014 word\u2014word... what?!", "well-known, word, word, what?"),
        ("snake_case and/or #tag \u2192 done\u2122", "snake case and or tag done"),
        ("\u4f60\u597d\U0001f60a\uff0c\u300c\u4e16\u754c\u300d\u3002", "\u4f60\u597d\uff0c\u4e16\u754c\u3002"),
        ("Caf\u00e9 \u043f\u0440\u0438\u0432\u0435\u0442", "Caf\u00e9 \u043f\u0440\u0438\u0432\u0435\u0442"),
        ("8...", "8."),
        ("Hello there,", "Hello there,"),
        ("The dish \u2014", "The dish,"),
    ],
)  # fmt: skip
def test_spoken_form(text: str, spoken: str) -> None:
    assert speakable(text).text == spoken


@pytest.mark.parametrize(
    "text", ["", "   ", "...", "\u2014", "*", "\U0001f60a", ")", "---", "<br>", "|---|---|", ":-)"]
)
def test_nothing_to_say(text: str) -> None:
    spoken = speakable(text)
    assert (spoken.text, spoken.marks) == ("", ())
    assert heard_prefix(text, spoken, 0) == ""


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("de", "R und D 5 Prozent 3 Euro 50"),
        ("fr-FR", "R et D 5 pour cent 3 euros 50"),
        ("xx", "R and D 5 percent 3 euros 50"),
    ],
)
def test_signs_in_other_languages(language: str, spoken: str) -> None:
    assert speakable("R&D 5% \u20ac3.50", language).text == spoken


def heard_after(text: str, words: int) -> str:
    spoken = speakable(text)
    end = [match.end() for match in re.finditer(r"\S+", spoken.text)][words - 1] if words else 0
    return heard_prefix(text, spoken, end)


# C08, C03, C01
@pytest.mark.parametrize(
    ("words", "heard"),
    list(enumerate(["", "KLM", "KLM asks", "KLM asks", "KLM asks", "KLM asks $7.20,", "KLM asks $7.20, fine?"])),
)
def test_money_is_heard_when_all_its_words_are(words: int, heard: str) -> None:
    assert heard_after("KLM asks $7.20, fine?", words) == heard


@pytest.mark.parametrize(
    ("text", "words", "heard"),
    [
        ("January, February, March, April, May, June", 5, "January, February, March, April, May,"),
        ("# A **bold** word", 2, "# A **bold**"),
        ("Ask [my friend](https://e.org) now", 3, "Ask [my friend](https://e.org)"),
        ("Ask [my friend](https://e.org) now", 2, "Ask [my"),
        ("Write jo@e.org now", 5, "Write"),
        ("Write jo@e.org now", 6, "Write jo@e.org"),
        ("Great! \U0001f60a How", 1, "Great!"),
        ("Say R&D now", 3, "Say"),
        ("Say R&D now", 4, "Say R&D"),
        ("Hello\n- item", 1, "Hello"),
        ("One two \U0001f60a", 2, "One two \U0001f60a"),
    ],
)
def test_the_original_is_cut_at_the_end_of_the_heard_word(text: str, words: int, heard: str) -> None:
    assert heard_after(text, words) == heard


def test_a_word_counts_when_its_last_letter_is_heard() -> None:
    spoken = speakable("Hello, world.")
    assert [heard_prefix("Hello, world.", spoken, at) for at in (4, 5, 6, 7, 11, 12, 13)] == [
        "", "Hello,", "Hello,", "Hello,", "Hello,", "Hello, world.", "Hello, world.",
    ]  # fmt: skip


def test_unspaced_scripts_are_cut_at_characters() -> None:
    text = "\u4f60\u597d\uff0c\u4e16\u754c\u3002"
    assert heard_prefix(text, speakable(text), 2) == text[:3]


def spoken_clauses(text: str) -> list[str]:
    splitter, filter_ = ClauseSplitter(), SpeakableFilter()
    clauses = [clause for char in text for clause in splitter.push(char)] + splitter.finish()
    return [spoken for clause in clauses if (spoken := filter_.speak(clause).text)]


def test_a_fence_over_several_clauses_is_omitted_once() -> None:
    text = "Here it is:\n```py\nx = 1\n\nif x: print('it is. one, two; three')\n```\nNow run it, please.\n~~~\ny = 2\n"
    assert spoken_clauses(text) == ["Here it is:", "code omitted", "Now run it, please.", "code omitted"]


def test_case_e01_as_clauses() -> None:
    assert " ".join(spoken_clauses(E01)) == "Title bold and x item quote label code omitted"


def test_a_fence_opened_and_closed_in_one_clause_leaves_no_state() -> None:
    assert spoken_clauses("Use ```x``` here.\nThen stop.") == ["Use code omitted here.", "Then stop."]


PIECES = [
    "word ", "**", "`", "```", "[a b](", "https://e.org/x) ", "jo@e.org ", "$5.50 ", "\u20ac3 ", "&", "% ", "5", "- ",
    "\n", "# ", "| ", "---", "<b>", "</b>", "&amp;", "Dr. ", "U.S. ", "\U0001f60a", "(", ")", '"', "\u2014", "...", " ",
    "\u4f60\u597d", "\u3002", "a.m. ", "_", "e\u0301", "\u00a0", "!", "?", ",",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(TEXTS)
def test_the_way_back_is_monotonic_and_ends_at_the_end(text: str) -> None:
    spoken = speakable(text)
    ends = [spoken.original_end(at) for at in range(len(spoken.text) + 1)]
    assert ends == sorted(ends)
    assert ends[0] == 0
    if spoken.text:
        assert heard_prefix(text, spoken, len(spoken.text)) == text.rstrip()
    for end in ends:
        assert text[:end] == text[:end].rstrip()


@settings(max_examples=200, derandomize=True, deadline=None)
@given(TEXTS)
def test_no_marks_are_left_to_read_out(text: str) -> None:
    spoken = speakable(text).text
    assert not set(spoken) & set("*`#[]{}<>|\\^~$%&=\n\U0001f60a\u20ac")
    assert "http" not in spoken
    assert spoken == spoken.strip()
    assert spoken == "" or any(char.isalnum() for char in spoken)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(["plain", "words", "only,", "here.", "don't", "3.14", "10:30"]), max_size=12))
def test_plain_text_is_left_alone(words: list[str]) -> None:
    assert speakable(" ".join(words)).text == " ".join(words)


def test_from_a_heard_word_back_to_the_generated_text() -> None:
    text = "Sure! It costs **$7.20** a month, see https://example.org/a for more. The trial is free."
    splitter, filter_ = ClauseSplitter(), SpeakableFilter()
    clauses = splitter.push(text) + splitter.finish()
    heard = []
    for clause in clauses:
        spoken = filter_.speak(clause)
        heard += [text[: clause.start + spoken.original_end(end)] for end, _ in spoken.marks]
    assert heard[0] == "Sure!"
    assert "Sure! It costs **$7.20**" in heard
    assert "Sure! It costs **$7.20** a month, see https://example.org/a" in heard
    assert heard[-1] == text
    assert all(not prefix.endswith(("$7", "**$7.20", "example.org")) for prefix in heard)
