"""Which tokens go into the next batch, and what stays in the key/value cache. Pure: no model, no thread, no clock.

Every request that has begun holds a slot, that is one sequence of the cache. A slot keeps its tokens when the request
ends, so the next request of that conversation computes only what is new. Any slot's beginning may serve another one
(the same system prompt, the same conversation asked twice at once); cells are shared then, not copied.

Nobody is pushed out: a request begins only when the cells it may need at most are free, in order of arrival, and only
slots without a request are emptied, the least recently used first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

ADOPT_GAIN = 8
"""Tokens another slot's beginning must be longer than one's own to be adopted; fewer are computed as fast."""


class CacheFull(Exception):
    """No free cells for this batch; nothing was changed."""


class Cache(Protocol):
    can_share: bool

    def keep(self, sequence: int, length: int) -> int:
        """Remove all from position `length` on; returns how many tokens are left."""

    def adopt(self, source: int, target: int, length: int) -> None:
        """Let the empty `target` begin with the first `length` tokens of `source`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One token of a batch."""

    sequence: int
    position: int
    token: int
    output: bool
    """Whether the distribution after this token is wanted."""


@dataclass(slots=True, eq=False)
class Slot:
    sequence: int
    tokens: list[int] = field(default_factory=list)
    """What the cache holds, by position."""
    conversation: str | None = None
    used: int = 0
    """When it was last taken or given back, as a count of such moments."""
    job: Job | None = None

    @property
    def cells(self) -> int:
        """An upper bound: cells shared with another slot are counted in both."""
        return max(len(self.tokens), self.job.reserve if self.job else 0)


@dataclass(slots=True, eq=False)
class Job:
    """What one request asks of the cache."""

    conversation: str
    pending: list[int]
    """Tokens still to be computed: the prompt, later the one token sampled last."""
    reserve: int
    """Cells it may need at most: prompt and reply."""
    slot: Slot | None = None
    cached: int = 0
    """Tokens of the prompt that were in the cache already."""
    generating: bool = False
    paused: bool = False
    """Left out of batches for now."""
    score_in: int | None = None
    """The distribution after this many of the pending tokens is wanted too; at first counted in the whole prompt."""


@dataclass(frozen=True, slots=True)
class Batch:
    entries: tuple[Entry, ...]
    parts: tuple[tuple[Job, int], ...]
    """Per job, in the order of the entries, how many of them are its own."""

    def outputs(self) -> list[tuple[Job, int]]:
        """Jobs and the indices of their entries whose distributions are ready after this batch, in order."""
        ready: list[tuple[Job, int]] = []
        end = 0
        for job, count in self.parts:
            ready += [(job, index) for index in range(end, end + count) if self.entries[index].output]
            end += count
        return ready


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    length = min(len(a), len(b))
    return next((i for i in range(length) if a[i] != b[i]), length)


class Batcher:
    def __init__(self, cache: Cache, *, sequences: int, cells: int) -> None:
        self._cache = cache
        self._slots = [Slot(sequence) for sequence in range(sequences)]
        self._cells = cells
        self._moment = 0
        self.waiting: deque[Job] = deque()
        self.active: list[Job] = []

    @property
    def cells(self) -> int:
        return sum(slot.cells for slot in self._slots)

    def runnable(self) -> bool:
        """Whether a step now would do anything."""
        return bool(self.waiting and self._fits(self.waiting[0])) or any(not job.paused for job in self.active)

    def submit(self, job: Job) -> None:
        self.waiting.append(job)

    def admit(self) -> list[Job]:
        """Give slots to waiting jobs, first come first served; returns those that begin now."""
        begun: list[Job] = []
        while self.waiting and self._fits(self.waiting[0]):
            job = self.waiting.popleft()
            self._begin(job)
            begun.append(job)
        return begun

    def plan(self, prefill: int) -> Batch:
        """One token of every job that generates, and up to `prefill` prompt tokens of the others, oldest first."""
        entries: list[Entry] = []
        parts: list[tuple[Job, int]] = []
        for job in sorted((job for job in self.active if not job.paused), key=lambda job: not job.generating):
            slot = _slot(job)
            count = len(job.pending) if job.generating else min(len(job.pending), prefill)
            if not job.generating:
                prefill -= count
            if count == 0:
                continue
            at, last = len(slot.tokens), len(job.pending) - 1
            wanted = {last, (job.score_in or 0) - 1}
            entries.extend(Entry(slot.sequence, at + i, job.pending[i], output=i in wanted) for i in range(count))
            parts.append((job, count))
        return Batch(tuple(entries), tuple(parts))

    def computed(self, batch: Batch) -> None:
        """The batch is in the cache now."""
        for job, count in batch.parts:
            _slot(job).tokens.extend(job.pending[:count])
            del job.pending[:count]
            if job.score_in is not None:
                job.score_in = job.score_in - count if job.score_in > count else None

    def finish(self, job: Job, *, discard: bool = False) -> None:
        """The job is over, or given up at any stage. `discard`: its cache is not to be trusted."""
        if job in self.waiting:
            self.waiting.remove(job)
        slot = job.slot
        if slot is None:
            return
        self.active.remove(job)
        job.slot, slot.job = None, None
        slot.used = self._next_moment()
        if discard or slot.conversation is None:
            self._empty(slot)

    def forget(self, conversation: str) -> None:
        """Empty the conversation's slots; those at work, when they end."""
        for slot in self._slots:
            if slot.conversation == conversation:
                slot.conversation = None
                if slot.job is None:
                    self._empty(slot)

    def evict(self) -> bool:
        """Empty the least recently used slot without a job; False if there is none."""
        idle = [slot for slot in self._slots if slot.job is None and slot.tokens]
        if idle:
            self._empty(min(idle, key=lambda slot: slot.used))
        return bool(idle)

    def _fits(self, job: Job) -> bool:
        busy = [slot for slot in self._slots if slot.job is not None]
        return len(busy) < len(self._slots) and sum(slot.cells for slot in busy) + job.reserve <= self._cells

    def _begin(self, job: Job) -> None:
        prompt = job.pending
        slot = self._choose(job)
        # The last token of the prompt is always computed: its distribution begins the reply. So is a scored one.
        most = (job.score_in or len(prompt)) - 1
        own = min(common_prefix(slot.tokens, prompt), most)
        donor = max(self._slots, key=lambda other: common_prefix(other.tokens, prompt))
        gift = min(common_prefix(donor.tokens, prompt), most)
        if self._cache.can_share and gift >= own + ADOPT_GAIN:
            self._empty(slot)
            self._cache.adopt(donor.sequence, slot.sequence, gift)
            own = gift
        elif own < len(slot.tokens):
            own = self._cache.keep(slot.sequence, own)
        slot.tokens = prompt[:own]
        slot.job, slot.conversation, slot.used = job, job.conversation, self._next_moment()
        job.slot, job.cached, job.pending = slot, own, prompt[own:]
        if job.score_in is not None:
            job.score_in -= own
        self.active.append(job)
        while self.cells > self._cells and self.evict():
            pass

    def _choose(self, job: Job) -> Slot:
        """The conversation's own idle slot that knows most of the prompt, else an empty one, else the oldest."""
        idle = [slot for slot in self._slots if slot.job is None]
        own = [slot for slot in idle if slot.conversation == job.conversation]
        if own:
            return max(own, key=lambda slot: common_prefix(slot.tokens, job.pending))
        return min(idle, key=lambda slot: (bool(slot.tokens), slot.used))

    def _empty(self, slot: Slot) -> None:
        if slot.tokens:
            self._cache.keep(slot.sequence, 0)
        slot.tokens, slot.conversation = [], None

    def _next_moment(self) -> int:
        self._moment += 1
        return self._moment


def _slot(job: Job) -> Slot:
    if job.slot is None:
        raise ValueError("the job has not begun")
    return job.slot
