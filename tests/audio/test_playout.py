"""Playout with tagged samples: every sample of a reply has a value of its own, so what was heard can be read back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from voice_agent.audio.playout import Playout, PlayoutDrained, PlayoutNotice, PlayoutStarted, PlayoutStarved

FADE = 240  # 5 ms at 48 kHz


def counting(start: int, count: int) -> np.ndarray:
    """start, start + 1, …"""
    return np.arange(start, start + count, dtype=np.int16)


def tagged(value: int, count: int) -> np.ndarray:
    return np.full(count, value, np.int16)


def listening(playout: Playout) -> list[PlayoutNotice]:
    notices: list[PlayoutNotice] = []
    playout.listener = notices.append
    return notices


def take(playout: Playout, frames: int) -> np.ndarray:
    return np.concatenate([playout.next_frame() for _ in range(frames)])


def open_with(*clauses: np.ndarray, reply: int = 1, held: bool = False) -> Playout:
    playout = Playout()
    playout.open_reply(reply, held=held)
    for number, samples in enumerate(clauses):
        assert playout.append(reply, number, samples)
    return playout


def test_silence_when_there_is_nothing_to_say():
    frame = Playout().next_frame()
    assert frame.shape == (960,)
    assert frame.dtype == np.int16
    assert not frame.any()


def test_clauses_are_heard_in_order_without_a_gap():
    """E17: a tone in pieces of 320 ms and odd lengths is one tone; no sample is missing where two pieces meet."""
    tone = (9000 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)).astype(np.int16)
    cuts = [0, 15_360, 15_361, 30_720, 30_720, 47_999, 48_000]
    playout = open_with(*(tone[begin:end] for begin, end in itertools.pairwise(cuts)))
    assert np.array_equal(take(playout, 50), tone)
    assert (playout.played, playout.buffered) == (48_000, 0)


def test_a_caller_may_reuse_its_array():
    samples = counting(1, 960)
    playout = open_with(samples)
    samples[:] = 0
    assert np.array_equal(playout.next_frame(), counting(1, 960))


def test_a_held_reply_is_not_heard_before_its_release():
    playout = open_with(counting(1, 960), held=True)
    notices = listening(playout)
    assert not take(playout, 3).any()
    assert (playout.held, playout.played, notices) == (True, 0, [])
    playout.release(1)
    assert np.array_equal(playout.next_frame(), counting(1, 960))
    assert notices == [PlayoutStarted(1)]


def test_releasing_or_finishing_another_reply_changes_nothing():
    playout = open_with(counting(1, 960), held=True)
    playout.release(7)
    playout.finish(7)
    assert playout.held
    playout.release(1)
    playout.next_frame()
    assert playout.append(1, 1, counting(1, 10))


def test_notices_begin_and_end():
    playout = open_with(counting(1, 960), counting(961, 500))
    notices = listening(playout)
    playout.finish(1)
    playout.next_frame()
    assert notices == [PlayoutStarted(1)]
    playout.next_frame()
    playout.next_frame()
    assert notices == [PlayoutStarted(1), PlayoutDrained(1)]
    assert (playout.reply, playout.played) == (1, 1460)


def test_a_reply_that_ends_with_a_frame_is_drained_with_it():
    playout = open_with(counting(1, 960))
    notices = listening(playout)
    playout.finish(1)
    playout.next_frame()
    assert notices == [PlayoutStarted(1), PlayoutDrained(1)]


def test_finishing_after_the_last_sample_drains_with_the_next_frame():
    playout = open_with(counting(1, 100))
    notices = listening(playout)
    playout.next_frame()
    playout.finish(1)
    playout.next_frame()
    assert notices == [PlayoutStarted(1), PlayoutStarved(1), PlayoutDrained(1)]


def test_a_reply_without_any_sound_drains_once_it_is_released():
    playout = open_with(held=True)
    notices = listening(playout)
    playout.finish(1)
    playout.next_frame()
    assert notices == []
    playout.release(1)
    take(playout, 2)
    assert notices == [PlayoutDrained(1)]


def test_each_gap_inside_a_reply_is_told_once():
    playout = open_with()
    notices = listening(playout)
    take(playout, 2)
    assert notices == []  # not begun: waiting is not a gap
    playout.append(1, 0, counting(1, 1000))
    take(playout, 5)
    assert notices == [PlayoutStarted(1), PlayoutStarved(1)]
    playout.append(1, 1, counting(1, 1920))
    take(playout, 3)
    assert notices == [PlayoutStarted(1), PlayoutStarved(1), PlayoutStarved(1)]


def test_supply_just_in_time_is_no_gap():
    playout = open_with()
    notices = listening(playout)
    for clause in range(4):
        playout.append(1, clause, counting(1, 960))
        playout.next_frame()
    assert notices == [PlayoutStarted(1)]


def test_pause_fades_at_once_and_resume_repeats_only_the_fade():
    playout = open_with(counting(10_000, 4 * 960))
    playout.next_frame()
    playout.pause()
    faded = playout.next_frame()
    expected = counting(10_960, FADE).astype(float)
    assert (faded[:FADE] <= expected).all()
    assert faded[0] > 0.99 * expected[0]
    assert 0 <= faded[FADE - 1] < 10
    assert not faded[FADE:].any()
    assert np.all(np.diff(faded[:FADE].astype(int)) <= 2)  # down all the way, but for the ramp in the signal itself
    assert (playout.played, playout.buffered, playout.paused) == (960, 3 * 960, True)
    assert not take(playout, 4).any()

    playout.resume()
    back = take(playout, 3)
    assert back[0] < 10
    assert np.array_equal(back[FADE:], counting(10_960 + FADE, 3 * 960 - FADE))
    assert (back[:FADE] <= expected).all()
    assert playout.played == 4 * 960


def test_pause_and_resume_within_one_frame_are_not_heard():
    playout = open_with(counting(1, 1920))
    playout.next_frame()
    playout.pause()
    playout.resume()
    assert np.array_equal(playout.next_frame(), counting(961, 960))


def test_pause_in_silence_fades_nothing():
    playout = open_with(counting(1, 500))
    playout.next_frame()  # ends in silence
    playout.append(1, 1, counting(5000, 960))
    playout.pause()
    assert not playout.next_frame().any()
    playout.resume()
    assert np.array_equal(playout.next_frame(), counting(5000, 960))


def test_fewer_samples_than_a_fade_fade_faster():
    playout = open_with(tagged(10_000, 960 + 30))
    playout.next_frame()
    playout.pause()
    faded = playout.next_frame()
    assert faded[0] > 9_900
    assert faded[29] < 300
    assert not faded[30:].any()


def test_a_paused_reply_does_not_starve():
    playout = open_with(counting(1, 1000))
    notices = listening(playout)
    playout.next_frame()
    playout.pause()
    take(playout, 5)
    assert notices == [PlayoutStarted(1)]


def test_clear_fades_and_gives_what_was_heard():
    playout = open_with(tagged(10_000, 48_000))
    take(playout, 3)
    assert playout.clear() == 3 * 960
    assert (playout.reply, playout.played, playout.buffered) == (None, 0, 0)
    faded = playout.next_frame()
    assert faded[0] > 9_900
    assert not faded[FADE:].any()
    assert not take(playout, 3).any()
    assert playout.clear() == 0


def test_clear_while_paused_is_silent_and_ends_the_pause():
    playout = open_with(tagged(10_000, 48_000))
    take(playout, 2)
    playout.pause()
    playout.next_frame()
    assert playout.clear() == 2 * 960
    assert not playout.paused
    assert not take(playout, 2).any()


def test_nothing_of_an_interrupted_reply_is_left():
    """B01: reply 1 is interrupted after one clause; its late clauses and its end must not reach replies 2 and 3."""
    playout = open_with(tagged(1000, 960), tagged(1000, 960))
    playout.next_frame()
    playout.clear()
    heard = [playout.next_frame()[FADE:]]
    for reply in (2, 3):
        playout.open_reply(reply, held=False)
        assert not playout.append(1, 2, tagged(1000, 960))
        playout.finish(1)
        assert playout.append(reply, 0, tagged(reply * 1000, 960))
        assert playout.append(reply, 1, tagged(reply * 1000, 960))
        playout.finish(reply)
        heard.append(take(playout, 4))
    values = np.concatenate(heard)
    assert not (values == 1000).any()
    assert [int(value) for value in values[np.flatnonzero(np.diff(values, prepend=0))]] == [2000, 0, 3000, 0]
    assert (values == 2000).sum() == (values == 3000).sum() == 1920


def test_a_second_question_stops_the_first_reply():
    """B11: opening the second reply is enough; the first one is not played on, before or after it."""
    playout = open_with(tagged(1000, 480_000))
    notices = listening(playout)
    take(playout, 100)
    playout.open_reply(2, held=False)
    playout.append(2, 0, tagged(2000, 1920))
    playout.finish(2)
    heard = take(playout, 5)
    assert heard[0] > 950
    assert not (heard[FADE:] == 1000).any()
    assert (heard == 2000).sum() == 1920
    assert notices == [PlayoutStarted(1), PlayoutStarted(2), PlayoutDrained(2)]


def test_a_noise_before_the_first_frame_does_not_cost_the_greeting():
    """B16: paused before anything was heard, then resumed: the greeting is heard whole, from its first sample."""
    playout = open_with(counting(1, 2880))
    playout.finish(1)
    playout.pause()
    assert not take(playout, 10).any()
    playout.resume()
    assert np.array_equal(take(playout, 3), counting(1, 2880))


def test_a_reply_cleared_before_its_first_frame_was_not_heard():
    """C01: queued is not heard."""
    playout = open_with(counting(1, 96_000))
    assert playout.clear() == 0
    assert not take(playout, 3).any()
    playout = open_with(counting(1, 96_000))
    playout.next_frame()
    assert playout.clear() == 960


def test_a_listener_may_act_from_within_a_notice():
    playout = open_with(counting(1, 960))
    seen: list[PlayoutNotice] = []

    def react(notice: PlayoutNotice) -> None:
        seen.append(notice)
        if notice == PlayoutDrained(1):
            playout.open_reply(2, held=False)
            playout.append(2, 0, counting(5, 960))

    playout.listener = react
    playout.finish(1)
    assert np.array_equal(playout.next_frame(), counting(1, 960))
    assert np.array_equal(playout.next_frame(), counting(5, 960))
    assert seen == [PlayoutStarted(1), PlayoutDrained(1), PlayoutStarted(2)]


@pytest.mark.parametrize("samples", [np.zeros(4, np.float32), np.zeros((2, 4), np.int16)])
def test_only_mono_int16_is_taken(samples):
    with pytest.raises(ValueError, match="int16"):
        open_with().append(1, 0, samples)


def test_clauses_out_of_order_are_refused():
    playout = open_with(counting(1, 10), counting(1, 10))
    with pytest.raises(ValueError, match="clause 0"):
        playout.append(1, 0, counting(1, 10))


def test_a_finished_reply_takes_no_more():
    playout = open_with(counting(1, 10))
    playout.finish(1)
    assert not playout.append(1, 1, counting(1, 10))


def test_the_buffer_is_bounded():
    playout = open_with(np.zeros(60 * 48_000, np.int16))
    with pytest.raises(ValueError, match="60 s"):
        playout.append(1, 1, counting(1, 1))
    playout.next_frame()
    assert playout.append(1, 1, counting(1, 960))


def test_other_rates():
    playout = Playout(rate=8000, frame=160)
    playout.open_reply(1, held=False)
    playout.append(1, 0, tagged(10_000, 320))
    playout.next_frame()
    playout.clear()
    faded = playout.next_frame()
    assert faded.shape == (160,)
    assert faded[0] > 9_500
    assert not faded[40:].any()  # 5 ms
