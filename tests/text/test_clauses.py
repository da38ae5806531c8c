"""Cases E04, E07, E09, E11, E13 of the public bug reports, and what every cut keeps, whatever the deltas."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.text.chars import has_letters
from voice_agent.text.clauses import Clause, ClauseSplitter


def split(text: str, first_words: int | None = 6, **options: int) -> list[str]:
    return [clause.text for clause in clauses_of([text], first_words, **options)]


def clauses_of(deltas: list[str], first_words: int | None = 6, **options: int) -> list[Clause]:
    splitter = ClauseSplitter(first_words, **options)
    return [clause for delta in deltas for clause in splitter.push(delta)] + splitter.finish()


SENTENCES = [
    ("Prof. Lee owes 2.75 euros to shop.example.org. Many thanks!", 2),
    (
        "Mrs. Hill lives on Elm St. near the old U.S. embassy and grows herbs, e.g. basil. "
        "She moved there from the U.S. in 1998. He lives on Oak St. He works from 8 a.m. to 4 p.m. every day.",
        4,
    ),
    ("We open at 9 a.m. and close at 5 p.m. on Mondays.", 1),
    ("Dr. Smith is in. He said pi is 3.14. Ask him.", 3),
    ("She got a Ph.D. in physics. J. K. Rowling did not.", 2),
    ("It is in the U.S. The flight takes 9.5 hours.", 2),
    ("See chapter No. 5. It costs 5. You pay 6.", 3),
    ("He shouted, 'Halt.' and ran.", 1),
    ('He asked "why?" and left. "Really?" she said. "Yes."', 3),
    ("Wait... what? Really?! Yes.", 3),
    ("It is approx. five km. from here. Go.", 2),
    ("Look at www.example.com/a?b=1. Then call.", 2),
    ("(It is closed.) Come back later.", 2),
    ("**It is closed.** Come back later.", 2),
    ("\u4f60\u597d\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff01\u8981\u51fa\u53bb\u5417\uff1f", 3),
    ("\u4ed6\u8bf4\u300c\u4f60\u597d\u3002\u300d\u8d70\u4e86\u3002\u597d\uff1f\uff01\u884c\u3002", 4),
    ("\u597d!\u4eca\u5929\u5f88\u597d.\u8d70\u5427", 3),
    ("Tr\u00e8s bien\u00a0! Quoi\u00a0? Oui.", 3),
    ("- eggs\n- milk\n- bread", 3),
    ("1. Beat the eggs\n2. Add milk", 2),
]


@pytest.mark.parametrize(("text", "count"), SENTENCES)
def test_one_clause_per_sentence(text: str, count: int) -> None:
    found = split(text, None, clause_words=1000)
    # The comma of the first clause is allowed to cut; here only sentences are counted.
    if found[0].endswith(","):
        found[:2] = [" ".join(found[:2])]
    assert len(found) == count, found


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Hello there, how are you?", "Hello there,"),
        ("Hello, how are you?", "Hello, how are you?"),
        ("Sure. I can do that", "Sure."),
        ("Hi! What next?", "Hi!"),
        ("The dish \u2014 a soup \u2014 is warm.", "The dish \u2014"),
        ("The dish\u2014a soup\u2014is warm.", "The dish\u2014"),
        ("Here it is: a long list of things", "Here it is:"),
        ("Seven small birds sit outside my window every day", "Seven small birds sit outside"),
        ("Seven small birds sit outside today and sing", "Seven small birds sit outside today"),
        ("The capital of France is the city of Paris", "The capital of France"),
        ("You should go and see Dr. Smith about that", "You should go and see Dr. Smith"),
        ("You pay exactly five dollars and 3.14 cents more", "You pay exactly five dollars"),
        ("We met on May 5, 2024, and then again", "We met on May 5, 2024,"),
        ("It costs 1,000,000.50 dollars a year to run it", "It costs 1,000,000.50 dollars a year"),
        (
            "See [the long label of this link](https://example.org/x) for more",
            "See [the long label of this link](https://example.org/x)",
        ),
    ],
)
def test_the_first_clause_comes_early(text: str, first: str) -> None:
    assert split(text)[0] == first


def test_the_first_clause_needs_no_more_than_the_space_after_its_last_word() -> None:
    splitter = ClauseSplitter(first_words=4)
    assert splitter.push("Many birds sing loudly") == []
    assert [c.text for c in splitter.push(" ")] == ["Many birds sing loudly"]


def test_a_decimal_is_not_cut_while_its_digits_arrive() -> None:
    splitter = ClauseSplitter()
    assert splitter.push("Pi is 3.") == []
    assert splitter.push("14") == []
    assert splitter.push(". ") == []
    assert [c.text for c in splitter.push("Now")] == ["Pi is 3.14."]


def test_later_clauses_are_sentences_or_long_parts() -> None:
    text = (
        "Sure. Take two eggs, some milk and a little butter, then beat them well until the mixture is light, "
        "and wait. Then, of course, eat."
    )
    assert split(text) == [
        "Sure.",
        "Take two eggs, some milk and a little butter,",
        "then beat them well until the mixture is light,",
        "and wait.",
        "Then, of course, eat.",
    ]


def test_no_clause_outgrows_the_limit_at_a_word() -> None:
    text = "Yes. " + "word another " * 60
    lengths = [len(part) for part in split(text)]
    assert max(lengths) <= 200
    assert len(lengths) == 1 + -(-780 // 200)


def test_unspaced_text_without_punctuation_is_cut() -> None:
    found = split("\u597d" * 500)
    assert max(len(part) for part in found) <= 67
    assert "".join(found) == "\u597d" * 500


def test_an_endless_word_is_released() -> None:
    found = split("x" * 5000)
    assert max(len(part) for part in found) <= 801
    assert "".join(found) == "x" * 5000


# E07: closing marks stay with what they close.
def test_a_closing_bracket_in_its_own_delta_is_attached() -> None:
    found = [c.text for c in clauses_of(["(Try a few and tell me when ready.", ")", " Next?"], None)]
    assert found == ["(Try a few and tell me when ready.)", "Next?"]


def test_an_unbalanced_bracket_is_released() -> None:
    assert split("(never closed. But it goes on", None) == ["(never closed.", "But it goes on"]
    assert split("[never closed. But it goes on") == ["[never closed. But it goes on"]
    assert len(split("[never closed " + "and so on " * 50)) >= 3


# E09: the first audio of a reply in an unspaced script is asked for before the second sentence is complete.
def test_unspaced_sentences_one_character_at_a_time() -> None:
    splitter = ClauseSplitter()
    released: list[tuple[int, str]] = []
    text = "\u4f60\u597d\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff01\u8981\u51fa\u53bb\u5417\uff1f"
    for number, char in enumerate(text, start=1):
        released += [(number, clause.text) for clause in splitter.push(char)]
    released += [(len(text), clause.text) for clause in splitter.finish()]
    assert [part for _, part in released] == [text[:3], text[3:10], text[10:]]
    assert [when for when, _ in released] == [3, 11, 15]


# E11
def test_the_last_sentence_without_punctuation_belongs_to_its_reply() -> None:
    assert split("Sure. I can do that") == ["Sure.", "I can do that"]
    assert split("Hello.") == ["Hello."]


def test_a_finished_splitter_takes_no_more() -> None:
    splitter = ClauseSplitter()
    splitter.push("Hello.")
    assert len(splitter.finish()) == 1
    assert splitter.finish() == []
    with pytest.raises(ValueError, match="finished"):
        splitter.push("Next")


# E13
@pytest.mark.parametrize("text", ["", "   ", "...", "\u2014", "*", "\U0001f60a", ")", "\n\n", "```\n"])
def test_symbols_alone_are_no_clause(text: str) -> None:
    assert split(text) == []


def test_a_number_with_an_ellipsis_is_one() -> None:
    assert split("8...") == ["8..."]


def test_symbols_go_to_the_clause_after_them() -> None:
    assert split("Great! \U0001f60a How are you? \U0001f60a") == ["Great!", "\U0001f60a How are you?"]


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ClauseSplitter(0)


PIECES = [
    "Dr. ", "U.S. ", "He ", "the ", "e.g. ", "3.14", "a.m. ", "shop.example.org", "word ", "long ", "Word. ", "no? ",
    "'Halt.' ", ", ", ".", "?", "!", ")", "(", '"', "'", "\u2014", " - ", "...", "\n", "[a b](", "https://e.org/a?b=1)",
    "\u4f60\u597d", "1. ", "\u3002", "\uff01", "\uff0c", "\u300c", "\u300d", "\U0001f60a", "5 ",
    "```py\n", "<b>", " ", "\u00a0!",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(TEXTS, st.data())
def test_every_token_split_gives_the_same_clauses(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    deltas = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = clauses_of([text])
    assert clauses_of(deltas) == whole
    assert clauses_of(list(text)) == whole


@pytest.mark.parametrize("text", [case[0] for case in SENTENCES])
def test_every_single_cut_of_the_sentences(text: str) -> None:
    whole = clauses_of([text])
    assert all(clauses_of([text[:at], text[at:]]) == whole for at in range(len(text)))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(TEXTS)
def test_clauses_cover_the_text_but_for_white_space_and_trailing_symbols(text: str) -> None:
    end = 0
    for number, clause in enumerate(clauses_of([text], max_chars=60)):
        assert clause.index == number
        assert clause.text == text[clause.start : clause.end] == clause.text.strip()
        assert text[end : clause.start].strip() == ""
        assert has_letters(clause.text)
        end = clause.end
    assert not has_letters(text[end:])


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(["alpha", "3.14", "Dr.", "e.g.", "a,", "so.", "1,000", "example.com"]), max_size=60))
def test_cuts_are_at_spaces(words: list[str]) -> None:
    assert " ".join(split(" ".join(words))) == " ".join(words)
