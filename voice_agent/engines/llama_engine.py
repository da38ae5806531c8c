"""A GGUF model answering several conversations at once.

One thread owns the model. It repeats: drop what was cancelled, begin what waits, run one batch (a token for every reply
in progress and a piece of the next prompt), sample, hand the text over. So a cancelled request is gone before the next
batch, two requests can never meet inside the model, and a request that fails takes no other with it.

A conversation's tokens stay in the cache between turns; see `llama_batch` for who shares and who is dropped. A prompt
longer than the window loses its oldest messages, never the system message or the last user message.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from voice_agent.engines.chat_format import ChatFormat, fit, jinja_template
from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.llama_batch import Batch, Batcher, CacheFull
from voice_agent.engines.llama_runtime import ENGINE, LlamaRuntime, log
from voice_agent.engines.llama_ticket import Ticket
from voice_agent.engines.llama_work import Scores, Work
from voice_agent.engines.llm_statistics import LanguageStatistics
from voice_agent.engines.ports import ChatMessage, ChatRequest, GenerationEnded, LanguageEvent, TextDelta, TurnScored
from voice_agent.errors import EngineError

PREFILL = 128
"""Prompt tokens per batch while no reply is being generated …"""
PREFILL_BESIDE = 32
"""… and while one is: each batch delays everybody's next token."""
FIRST_TOKENS = 12
"""Tokens of a reply in which its first clause is likely to be complete …"""
READER_PATIENCE = 0.004
"""… and seconds the next batch waits for the reader of each, so that synthesis of that clause finds the cores free.
Otherwise both run at once, and synthesis took 100 ms instead of 50."""
GATE_PATIENCE = 0.25
"""Seconds a batch waits for more urgent work …"""
GATE_GRACE = 8
"""… and batches that do not wait after one that waited in vain, so that replies go on under constant urgent load."""


class LlamaEngine:
    """A `LanguageModel`. Use it from any number of event loops; `close` it once."""

    def __init__(
        self,
        path: Path | str,
        *,
        threads: int,
        prefill_threads: int | None = None,
        gate: CpuGate | None = None,
        n_ctx: int = 4096,
        max_conversations: int = 8,
    ) -> None:
        """Loads the model, which takes a second. Raises EngineError (`model`, `memory`).

        `threads` for batches of one token, `prefill_threads` (the same if None) for larger ones; `n_ctx` tokens are
        shared by all conversations, and no single one may use more than half of them.
        """
        self._runtime = LlamaRuntime(
            Path(path),
            threads=threads,
            prefill_threads=prefill_threads or threads,
            n_ctx=n_ctx,
            n_batch=PREFILL + max_conversations,
            sequences=max_conversations,
        )
        try:
            self._format = _chat_format(self._runtime)
            self._scores = Scores(self._runtime)
        except BaseException:
            self._runtime.close()
            raise
        share = self._runtime.n_ctx // (2 if max_conversations > 1 else 1)
        self._window = min(share, self._runtime.n_train)
        self._batcher = Batcher(self._runtime, sequences=max_conversations, cells=self._runtime.n_ctx)
        self._gate = gate
        self._grace = 0
        self._dropped: dict[str, int] = {}
        self._works: list[Work] = []
        self._statistics = LanguageStatistics()

        self._changed = threading.Condition()
        # Guarded by `_changed`, as is every notification to the thread:
        self._inbox: list[Ticket | str] = []
        self._woken = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="llm", daemon=True)
        self._thread.start()

    # --- from event loops

    async def stream(self, request: ChatRequest) -> AsyncGenerator[LanguageEvent, None]:
        """Generate a reply; see `LanguageModel.stream`. Close it (`contextlib.aclosing`) if you leave it early.

        Raises EngineError: `closed`, `too_long` (system and last user message exceed the window), `empty`, `decode`.
        """
        ticket = self._submit(request, reply=True)
        try:
            while True:
                event = await ticket.take()
                if event is None or isinstance(event, float):
                    raise TypeError(f"{event!r} in a reply")
                yield event
                if isinstance(event, GenerationEnded):
                    return
        finally:
            ticket.cancel()

    async def end_of_turn(self, request: ChatRequest) -> float | None:
        """See `LanguageModel.end_of_turn`. None if the last message is not a user's or says nothing."""
        ticket = self._submit(request, reply=False)
        try:
            score = await ticket.take()
            if isinstance(score, TextDelta | TurnScored | GenerationEnded):
                raise TypeError(f"{score!r} instead of a score")
            return score
        finally:
            ticket.cancel()

    def forget(self, conversation: str) -> None:
        """Drop the conversation's cache, as soon as a running batch is through."""
        with self._changed:
            if not self._closing:
                self._inbox.append(conversation)
                self._notify()

    async def warm_up(self) -> None:
        request = ChatRequest("warm-up", (ChatMessage("user", "Hello"),), max_tokens=2, temperature=0.0)
        async for _event in self.stream(request):
            pass
        self.forget(request.conversation)

    async def close(self) -> None:
        """Fail what is unfinished with EngineError `closed`, end the thread, free the model."""
        with self._changed:
            self._closing = True
            self._notify()
        await asyncio.to_thread(self._thread.join)

    def statistics(self) -> LanguageStatistics:
        """A snapshot; from any thread."""
        return self._statistics

    def _submit(self, request: ChatRequest, *, reply: bool) -> Ticket:
        ticket = Ticket(request, reply=reply, wake=self._wake)
        with self._changed:
            if self._closing:
                raise _closed()
            self._inbox.append(ticket)
            self._notify()
        return ticket

    def _wake(self) -> None:
        with self._changed:
            self._notify()

    def _notify(self) -> None:
        self._woken = True
        self._changed.notify()

    # --- the engine's thread

    def _run(self) -> None:
        try:
            while self._wait_for_work():
                try:
                    self._step()
                except Exception as error:  # whatever it is, the other calls go on with a clean cache
                    log.exception("language model step failed")
                    self._fail_all(_engine_error(error))
                    self._runtime.clear()
        finally:
            with self._changed:
                self._closing = True
            self._receive()
            self._fail_all(_closed())
            self._runtime.close()

    def _wait_for_work(self) -> bool:
        """Sleep until a step would do something; False when the engine closes."""
        with self._changed:
            while not (self._closing or self._woken or self._batcher.runnable()):
                self._changed.wait()
            self._woken = False
            return not self._closing

    def _step(self) -> None:
        self._receive()
        for work in [work for work in self._works if work.ticket.cancelled]:
            self._end(work, cancelled=1)
        for work in self._works:
            work.job.paused = work.ticket.hold()
        for job in self._batcher.admit():
            self._count(cached_tokens=job.cached)
        generating = any(work.job.generating for work in self._works)
        batch = self._batcher.plan(PREFILL_BESIDE if generating else PREFILL)
        if batch.entries:
            self._let_readers_read(batch)
            self._let_urgent_work_pass()
            self._compute(batch)
        self._count()

    def _receive(self) -> None:
        """Take what the loops have left: new requests, and conversations to forget."""
        with self._changed:
            inbox, self._inbox = self._inbox, []
        for item in inbox:
            if isinstance(item, str):
                self._dropped.pop(item, None)
                self._batcher.forget(item)
                continue
            try:
                self._begin(item)
            except Exception as error:  # a template or a text nobody foresaw must not end other people's calls
                item.finished = True
                item.post(_engine_error(error))
                self._count(failed=1)

    def _begin(self, ticket: Ticket) -> None:
        self._count(requests=1)
        request = ticket.request
        messages = self._fitting(request)
        opened = self._format.open_turn(messages) if request.score_turn or not ticket.reply else None
        if opened is None and not ticket.reply:
            ticket.finished = True
            ticket.post(None)
            return
        text, closing = opened or ("", "")
        said = self._runtime.tokenize(text, begin=True) if opened else []
        prompt = self._runtime.tokenize(self._format.prompt(messages), begin=True) if ticket.reply else said
        # The last word's distribution is on the way to the reply, unless its token swallows the punctuation after it.
        scored = len(said) if ticket.reply and said and prompt[: len(said)] == said else None
        room = self._window - len(prompt)
        if not prompt or room < 1:
            code, what = ("too_long", f"{len(prompt)} tokens") if prompt else ("empty", "no text")
            raise EngineError(ENGINE, code, f"cannot answer a prompt of {what} in a window of {self._window}")
        work = Work(ticket, prompt, room, closing, self._runtime, scored)
        self._works.append(work)
        self._batcher.submit(work.job)

    def _fitting(self, request: ChatRequest) -> tuple[ChatMessage, ...]:
        def count(messages: Sequence[ChatMessage]) -> int:
            return len(self._runtime.tokenize(self._format.prompt(messages), begin=True))

        limit = self._window - min(request.max_tokens, self._window // 2)
        dropped = self._dropped.get(request.conversation, 0)
        messages, dropped = fit(request.messages, count, limit=limit, dropped=dropped)
        if dropped:
            self._dropped[request.conversation] = dropped
        return messages

    def _let_readers_read(self, batch: Batch) -> None:
        if self._gate is None:
            return
        jobs = {job for job, _ in batch.parts if job.generating}
        for work in self._works:
            if work.job in jobs and work.generated <= FIRST_TOKENS:
                work.ticket.wait_until_read(READER_PATIENCE)

    def _let_urgent_work_pass(self) -> None:
        if self._gate is None:
            return
        if self._grace:
            self._grace -= 1
        elif not self._gate.wait_clear(0):
            self._count(gate_waits=1)
            if not self._gate.wait_clear(GATE_PATIENCE):
                self._grace = GATE_GRACE

    def _compute(self, batch: Batch) -> None:
        try:
            self._runtime.decode(batch.entries)
        except CacheFull:
            if not self._batcher.evict():
                raise EngineError(ENGINE, "decode", "the cache is full") from None
            return  # nothing has changed: the next step plans the same batch again
        self._batcher.computed(batch)
        self._count(
            steps=1,
            prefilled_tokens=sum(count for job, count in batch.parts if not job.generating),
            largest_batch=max(len(batch.entries) - self._statistics.largest_batch, 0),
            most_sequences=max(len(batch.parts) - self._statistics.most_sequences, 0),
        )
        by_job = {work.job: work for work in self._works}
        for job, index in batch.outputs():
            work = by_job[job]
            before = work.generated
            try:
                over = work.output(index, self._scores)
            except Exception as error:  # this request is at fault, not its neighbours in the batch
                log.exception("language model request failed")
                self._fail(work, _engine_error(error))
                continue
            self._count(decoded_tokens=work.generated - before)
            if over:
                self._end(work)
                work.ticket.post(work.answer)

    def _end(self, work: Work, *, cancelled: int = 0) -> None:
        work.ticket.finished = True
        self._works.remove(work)
        self._batcher.finish(work.job)
        work.close()
        self._count(cancelled=cancelled)

    def _fail(self, work: Work, error: EngineError) -> None:
        self._works.remove(work)
        self._batcher.finish(work.job, discard=True)
        work.close()
        work.ticket.finished = True
        work.ticket.post(error)
        self._count(failed=1)

    def _fail_all(self, error: EngineError) -> None:
        for work in list(self._works):
            self._fail(work, error)
        while self._batcher.evict():
            pass

    def _count(self, **more: int) -> None:
        """Replace the snapshot; only this thread writes it."""
        now = self._statistics
        self._statistics = dataclasses.replace(
            now,
            active=len(self._batcher.active),
            waiting=len(self._batcher.waiting),
            cells=self._batcher.cells,
            **{name: getattr(now, name) + value for name, value in more.items()},
        )


def _chat_format(runtime: LlamaRuntime) -> ChatFormat:
    markup = runtime.chat_markup()
    if markup.template is None:
        return ChatFormat(None, markup.control)
    try:
        template = jinja_template(markup.template, bos=markup.bos, eos=markup.eos)
    except Exception as error:  # the file's author wrote it; ChatML is the best guess left
        log.warning("chat template of the model file is unusable (%s); using ChatML", error)
        template = None
    return ChatFormat(template, markup.control)


def _closed() -> EngineError:
    return EngineError(ENGINE, "closed", "the engine is closed")


def _engine_error(error: Exception) -> EngineError:
    if isinstance(error, EngineError):
        return error
    wrapped = EngineError(ENGINE, "internal", f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
