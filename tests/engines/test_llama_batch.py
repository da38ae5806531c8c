"""The planner on a cache that only takes notes; tokens are plain numbers."""

from __future__ import annotations

import random

from voice_agent.engines.llama_batch import Batch, Batcher, Job, common_prefix


class NotedCache:
    """Holds the tokens a real cache would hold, from what it is told alone."""

    can_share = True

    def __init__(self, *, can_cut: bool = True) -> None:
        self.sequences: dict[int, list[int]] = {}
        self.can_cut = can_cut

    def keep(self, sequence: int, length: int) -> int:
        length = length if self.can_cut else 0
        self.sequences[sequence] = self.sequences.get(sequence, [])[:length]
        return length

    def adopt(self, source: int, target: int, length: int) -> None:
        assert not self.sequences.get(target)
        self.sequences[target] = self.sequences[source][:length]

    def compute(self, batch: Batch) -> None:
        for entry in batch.entries:
            tokens = self.sequences.setdefault(entry.sequence, [])
            assert entry.position == len(tokens), "positions follow one another"
            tokens.append(entry.token)


def job(conversation: str, prompt: list[int], reply: int = 4) -> Job:
    return Job(conversation, list(prompt), len(prompt) + reply)


def run(batcher: Batcher, cache: NotedCache, prefill: int = 100) -> Batch:
    batcher.admit()
    batch = batcher.plan(prefill)
    cache.compute(batch)
    batcher.computed(batch)
    return batch


def answer(batcher: Batcher, cache: NotedCache, done: Job) -> Job:
    batcher.submit(done)
    run(batcher, cache)
    batcher.finish(done)
    return done


PROMPT = list(range(40))


def test_the_next_turn_computes_only_what_is_new() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=2, cells=1000)
    assert answer(batcher, cache, job("a", PROMPT)).cached == 0
    assert answer(batcher, cache, job("a", [*PROMPT, 100, 101])).cached == 40
    assert answer(batcher, cache, job("a", [*PROMPT[:30], 7])).cached == 30
    assert cache.sequences == {0: [*PROMPT[:30], 7]}


def test_the_last_token_of_a_known_prompt_is_computed_again() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=1, cells=1000)
    answer(batcher, cache, job("a", PROMPT))
    batcher.submit(again := job("a", PROMPT))
    batch = run(batcher, cache)
    assert [(entry.position, entry.output) for entry in batch.entries] == [(39, True)]
    assert again.cached == 39


def test_another_conversation_shares_the_beginning() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=2, cells=1000)
    answer(batcher, cache, job("a", PROMPT))
    assert answer(batcher, cache, job("b", [*PROMPT[:20], 99])).cached == 20
    assert cache.sequences == {0: PROMPT, 1: [*PROMPT[:20], 99]}


def test_a_model_that_cannot_share_or_cut_computes_all() -> None:
    cache = NotedCache(can_cut=False)
    cache.can_share = False
    batcher = Batcher(cache, sequences=2, cells=1000)
    answer(batcher, cache, job("a", PROMPT))
    assert answer(batcher, cache, job("b", PROMPT)).cached == 0
    assert answer(batcher, cache, job("a", [*PROMPT[:20], 99])).cached == 0
    assert cache.sequences[0] == [*PROMPT[:20], 99]


def test_a_busy_conversation_asked_again_gets_a_second_sequence() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=3, cells=1000)
    batcher.submit(first := job("a", PROMPT))
    run(batcher, cache)
    batcher.submit(second := job("a", [*PROMPT, 50]))
    run(batcher, cache)
    assert first.slot is not second.slot
    assert second.cached == 40


def test_a_batch_is_one_token_per_reply_and_a_piece_of_the_oldest_prompt() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=3, cells=1000)
    jobs = [job(name, [number] * 30) for number, name in enumerate("abc")]
    batcher.submit(jobs[0])
    run(batcher, cache)
    jobs[0].generating = True
    jobs[0].pending.append(77)
    batcher.submit(jobs[1])
    batcher.submit(jobs[2])
    batch = run(batcher, cache, prefill=32)
    assert [(part.conversation, count) for part, count in batch.parts] == [("a", 1), ("b", 30), ("c", 2)]
    assert [(part.conversation, index) for part, index in batch.outputs()] == [("a", 0), ("b", 30)]
    assert len(jobs[2].pending) == 28


def test_a_paused_job_is_left_out_and_wakes_nobody() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=2, cells=1000)
    batcher.submit(first := job("a", PROMPT))
    batcher.admit()
    first.paused = True
    assert batcher.plan(100).entries == ()
    assert not batcher.runnable()


def test_the_least_recently_used_conversation_is_dropped_when_sequences_run_out() -> None:
    cache = NotedCache()
    cache.can_share = False
    batcher = Batcher(cache, sequences=2, cells=1000)
    answer(batcher, cache, job("old", [1] * 10))
    answer(batcher, cache, job("new", [2] * 10))
    answer(batcher, cache, job("old", [1] * 11))
    answer(batcher, cache, job("third", [3] * 10))
    assert sorted(cache.sequences.values()) == [[1] * 11, [3] * 10]


def test_the_least_recently_used_conversations_are_dropped_when_cells_run_out() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=4, cells=100)
    for number in range(3):
        answer(batcher, cache, job(str(number), [number] * 30, reply=0))
    answer(batcher, cache, job("3", [3] * 60, reply=4))
    assert cache.sequences == {0: [], 1: [], 2: [2] * 30, 3: [3] * 60}
    assert batcher.cells == 90


def test_who_does_not_fit_waits_in_order_and_nobody_overtakes() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=4, cells=100)
    batcher.submit(first := job("a", [1] * 60, reply=10))
    batcher.submit(large := job("b", [2] * 40))
    batcher.submit(small := job("c", [3] * 5))
    assert batcher.admit() == [first]
    assert not batcher.admit()
    batcher.finish(first)
    assert batcher.admit() == [large, small]


def test_a_waiting_job_can_be_given_up() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=1, cells=100)
    batcher.submit(first := job("a", PROMPT))
    batcher.submit(second := job("b", PROMPT))
    batcher.admit()
    batcher.finish(second)
    batcher.finish(first)
    assert (list(batcher.waiting), batcher.active, batcher.runnable()) == ([], [], False)


def test_forgetting_empties_now_or_when_the_request_ends() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=2, cells=1000)
    answer(batcher, cache, job("idle", PROMPT))
    batcher.submit(running := job("busy", [5] * 9))
    run(batcher, cache)
    batcher.forget("idle")
    batcher.forget("busy")
    batcher.forget("nobody")
    assert cache.sequences == {0: [], 1: [5] * 9}
    batcher.finish(running)
    assert cache.sequences == {0: [], 1: []}
    assert batcher.cells == 0


def test_a_failed_request_leaves_nothing_behind() -> None:
    cache = NotedCache()
    batcher = Batcher(cache, sequences=1, cells=1000)
    batcher.submit(first := job("a", PROMPT))
    run(batcher, cache)
    batcher.finish(first, discard=True)
    assert cache.sequences == {0: []}


def test_random_walks_keep_the_books_right() -> None:
    """300 random requests, cancelled anywhere: the planner's idea of the cache is always the cache."""
    for seed in range(20):
        dice = random.Random(seed)
        cache = NotedCache()
        batcher = Batcher(cache, sequences=3, cells=120)
        for _ in range(300):
            if dice.random() < 0.4:
                prompt = [dice.randrange(2) for _ in range(dice.randint(1, 60))]
                batcher.submit(job(dice.choice("abcd"), prompt, dice.randint(0, 20)))
            if dice.random() < 0.1:
                batcher.forget(dice.choice("abcd"))
            for done, _index in run(batcher, cache, prefill=dice.randint(1, 40)).outputs():
                slot = done.slot
                assert slot is not None
                if len(slot.tokens) < done.reserve and dice.random() < 0.8:
                    done.generating = True
                    done.pending.append(dice.randrange(2))
                else:
                    batcher.finish(done)
            for victim in [*batcher.active, *batcher.waiting]:
                if dice.random() < 0.05:
                    batcher.finish(victim, discard=dice.random() < 0.3)
            held = {slot.sequence: slot.tokens for slot in batcher._slots}
            assert {n: cache.sequences.get(n, []) for n in held} == held
            assert batcher.cells <= 120


def test_common_prefix() -> None:
    assert common_prefix([], [1]) == 0
    assert common_prefix([1, 2, 3], [1, 2]) == 2
    assert common_prefix([1, 2, 3], [1, 9, 3]) == 1
