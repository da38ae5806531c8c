"""Playout under random calls, against a model that only counts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.audio.test_playout import FADE, counting, listening, tagged
from voice_agent.audio.playout import Playout, PlayoutStarved


class Walk:
    """Random calls beside a model that only counts. Sample k of every reply has the value k + 1."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.playout = Playout()
        self.notices = listening(self.playout)
        self.reply = 0
        self.appended = self.heard = 0
        self.sounding = False  # the last frame ended in the middle of the reply
        self.tail = 0  # samples of a cleared reply that fade at the beginning of the next frame

    def step(self) -> None:
        getattr(self, self.dice.choice(["begin", "more", "more", "more", "hear", "hear", "hear", "hear", *OTHERS]))()

    def begin(self) -> None:
        self.forget()
        self.reply += 1
        self.playout.open_reply(self.reply, held=self.dice.random() < 0.5)

    def more(self) -> None:
        count = min(self.dice.randrange(2500), 30_000 - self.appended)
        assert not self.playout.append(self.reply - 1, 0, tagged(-1, 50))
        if self.playout.append(self.reply, 0, counting(self.appended + 1, count)):
            self.appended += count

    def hear(self) -> None:
        silent = self.playout.paused or self.playout.held
        count = 0 if silent else min(960 - self.tail, self.appended - self.heard)
        fading = self.tail or (FADE if silent and self.sounding else 0)
        frame = self.playout.next_frame()
        assert len(frame) == 960
        assert (frame >= 0).all()
        part, expected = frame[self.tail : self.tail + count], counting(self.heard + 1, count)
        assert np.array_equal(part[FADE:], expected[FADE:])
        assert (part[:FADE] <= expected[:FADE]).all()  # faded in after a pause, or not
        assert not frame[max(fading, self.tail + count) :].any()
        self.heard += count
        self.sounding = count > 0 and self.tail + count == 960
        self.tail = 0

    def finish(self) -> None:
        self.playout.finish(self.reply)

    def release(self) -> None:
        self.playout.release(self.reply)

    def pause(self) -> None:
        self.playout.pause()

    def resume(self) -> None:
        self.playout.resume()

    def clear(self) -> None:
        heard = self.heard
        self.forget()
        assert self.playout.clear() == heard
        assert self.playout.reply is None

    def forget(self) -> None:
        if self.sounding and self.appended > self.heard:
            self.tail = min(FADE, self.appended - self.heard)
        self.appended = self.heard = 0
        self.sounding = False

    def check(self) -> None:
        assert (self.playout.played, self.playout.buffered) == (self.heard, self.appended - self.heard)
        told = [notice for notice in self.notices if not isinstance(notice, PlayoutStarved)]
        assert len(told) == len(set(told))
        assert [notice.reply for notice in self.notices] == sorted(notice.reply for notice in self.notices)


OTHERS = ["finish", "release", "pause", "resume", "resume", "clear"]


@pytest.mark.parametrize("seed", range(40))
def test_random_walks_keep_the_invariants(seed):
    walk = Walk(seed)
    for _ in range(400):
        walk.step()
        walk.check()
    assert walk.reply > 5
