"""One request on its way through the engine's thread: what happens to a distribution once it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from voice_agent.engines.detokenise import Detokeniser
from voice_agent.engines.llama_batch import Job
from voice_agent.engines.llama_runtime import LlamaRuntime, Sampling
from voice_agent.engines.llama_ticket import Message, Ticket
from voice_agent.engines.ports import GenerationEnded, TextDelta, TurnScored

SENTENCE_ENDS = (".", "?", "!", '."', '?"', '!"', "?!", "!!", ".\n", "?\n", "!\n", ".\n\n", "。", "？", "！", "।", "؟")
"""Texts that end a sentence, as far as the vocabulary has them as one token. Not "...", which says the opposite, and
not the thousands of tokens of a code model that begin with a full stop, such as ".com"."""


class Scores:
    """How likely a distribution says the turn is over."""

    def __init__(self, runtime: LlamaRuntime) -> None:
        self._runtime = runtime
        single = [runtime.tokenize(text, begin=False) for text in SENTENCE_ENDS]
        self._ends = [ids[0] for ids in single if len(ids) == 1]
        self._closing: dict[str, int] = {}

    def over(self, index: int, closing: str) -> float:
        """Probability, after entry `index` of the last batch, of a sentence's end or of the token `closing` (the
        template's text that ends a user's turn) begins with."""
        if closing not in self._closing:
            self._closing[closing] = self._runtime.tokenize(closing, begin=False)[0]
        tokens = np.unique([*self._ends, self._closing[closing]])
        return float(min(self._runtime.probabilities(index)[tokens].sum(), 1.0))


class Work:
    """Owned by the engine's thread. `room` is what the window leaves for a reply to `prompt`.

    `score_in`: the distribution after so many tokens of the prompt tells whether the user's turn is over (None: not
    wanted); the turn would end there with the text `closing`.
    """

    def __init__(
        self,
        ticket: Ticket,
        prompt: Sequence[int],
        room: int,
        closing: str,
        runtime: LlamaRuntime,
        score_in: int | None = None,
    ) -> None:
        request = ticket.request
        self.ticket = ticket
        self._runtime = runtime
        self._closing = closing
        self._limit = min(request.max_tokens, room) if ticket.reply else 0
        self._prompt_tokens = len(prompt)
        self.generated = 0
        """Tokens of the reply so far, without the one that ended it."""
        self.answer: Message = None
        """What to post last, once the request's resources are free."""
        self._text = Detokeniser(request.stop)
        self._score_due = score_in is not None
        self.job = Job(request.conversation, list(prompt), len(prompt) + self._limit, score_in=score_in)
        self._sampler: Any = None
        if ticket.reply:
            self._sampler = runtime.new_sampler(Sampling(request.temperature, request.top_p, request.seed))

    def output(self, index: int, scores: Scores) -> bool:
        """Use the distribution of entry `index` of the last batch; true if the request is answered."""
        if not self.ticket.reply:
            self.answer = scores.over(index, self._closing)
            return True
        if self._score_due:
            self._score_due = False
            self.ticket.post(TurnScored(scores.over(index, self._closing)))
            return False
        token = self._runtime.sample(self._sampler, index)
        if self._runtime.is_end(token):
            return self._finish("stop")
        self.generated += 1
        self._post(self._text.feed(self._runtime.piece(token)))
        if self._text.stopped:
            return self._finish("stop")
        if self.generated >= self._limit:
            return self._finish("length")
        self.job.generating = True
        self.job.pending.append(token)
        return False

    def close(self) -> None:
        if self._sampler is not None:
            self._runtime.free_sampler(self._sampler)
            self._sampler = None

    def _finish(self, reason: Literal["stop", "length"]) -> bool:
        self._post(self._text.finish())
        self.answer = GenerationEnded(reason, self._prompt_tokens, self.job.cached, self.generated)
        return True

    def _post(self, text: str) -> None:
        if text:
            self.ticket.post(TextDelta(text))
