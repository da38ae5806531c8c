from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.engines.detokenise import Detokeniser


def released(pieces: list[bytes], stop: tuple[str, ...] = ()) -> tuple[list[str], str, bool]:
    detokeniser = Detokeniser(stop)
    during = [detokeniser.feed(piece) for piece in pieces]
    return during, detokeniser.finish(), detokeniser.stopped


MIXED = "안녕하세요 😀 é 👩‍👩‍👧"


def test_a_character_comes_with_its_last_byte() -> None:
    during, rest, _ = released([bytes([byte]) for byte in MIXED.encode()])
    assert [text for text in during if text] == list(MIXED)
    at = 0
    for text, byte in zip(during, range(len(MIXED.encode())), strict=True):
        at += len(text.encode())
        assert (at == byte + 1) == bool(text)
    assert rest == ""


@given(st.text(), st.lists(st.integers(0, 400)))
def test_cuts_do_not_matter(text: str, cuts: list[int]) -> None:
    data = text.encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    during, rest, _ = released([data[a:b] for a, b in pairwise(edges)])
    assert "".join(during) + rest == text


def test_bytes_that_are_no_text_are_dropped() -> None:
    assert released([b"a\xff", b"\xc3", b"b"]) == (["a", "", "b"], "", False)
    assert released([b"a", b"\xf0\x9f"]) == (["a", ""], "", False)


def test_a_stop_string_over_several_tokens() -> None:
    pieces = [b"Fine", b"<<", b"EN", b"D>>", b"tail"]
    assert released(pieces, ("<<END>>",)) == (["Fine", "", "", "", ""], "", True)


def test_what_only_began_like_a_stop_string_is_released() -> None:
    assert released([b"a <", b"<", b"ENT"], ("<<END>>",)) == (["a ", "", "<<ENT"], "", False)
    assert released([b"a <<EN"], ("<<END>>",)) == (["a "], "<<EN", False)


def test_text_before_the_stop_in_the_same_token_is_kept() -> None:
    assert released([b"Hi", b"!\n"], ("\n",)) == (["Hi", "!"], "", True)


@pytest.mark.parametrize("stop", [("aab",), ("aab", "b"), ("", "aab")])
def test_a_stop_string_may_begin_inside_itself(stop: tuple[str, ...]) -> None:
    during, rest, stopped = released([b"a", b"a", b"a", b"b", b"c"], stop)
    assert ("".join(during) + rest, stopped) == ("a", True)


@given(st.text("ab<"), st.lists(st.integers(0, 40)), st.text("ab<", min_size=1, max_size=4))
def test_a_stop_string_is_found_at_every_cut(text: str, cuts: list[int], stop: str) -> None:
    data = text.encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    during, rest, stopped = released([data[a:b] for a, b in pairwise(edges)], (stop,))
    assert "".join(during) + rest == text.split(stop)[0]
    assert stopped == (stop in text)
