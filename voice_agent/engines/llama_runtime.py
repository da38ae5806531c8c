"""llama.cpp's C interface, as few calls as the engine needs; the only module that imports `llama_cpp`.

One model, one context, a unified key/value cache whose cells several sequences may share. Nothing here is thread-safe
except `tokenize` and `piece`, which only read the vocabulary: one thread owns a runtime for all its life.

Lifetimes: the context and the batch are freed before the model; samplers belong to their creator. Every integer
returned by the library is checked, because the library reports a broken file or a full cache only that way.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# libgomp reads this when it is loaded. Its threads meet at hundreds of barriers per token and spin there, by default
# 300,000 times, before they sleep. Where anything else wants a core (recognition, synthesis), the one that runs waits
# so for the one that does not. On two cores kept busy by others a token took 0.9 to 2.3 s with the default and 0.2 to
# 0.3 s with 1,000. But 1,000 sleeps too readily: beside a light real-time process (3 ms in 20) it gave 10 tokens a
# second where 10,000 gave 14 and the default 13. Undisturbed, all are equally fast.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from voice_agent.engines.llama_batch import CacheFull, Entry
from voice_agent.errors import EngineError

log = logging.getLogger(__name__)

ENGINE = "llm"

_ERROR_LEVEL = 4  # GGML_LOG_LEVEL_ERROR in ggml.h; the numbers in the binding's own comments are out of date
_last_errors: list[str] = []


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _on_log(level: int, text: bytes, _data: object) -> None:
    """llama.cpp prints hundreds of lines while it loads; only its errors matter here."""
    if level == _ERROR_LEVEL and (line := text.decode("utf-8", "replace").strip()):
        _last_errors.append(line)
        del _last_errors[:-4]
        log.error("llama.cpp: %s", line)


@dataclass(frozen=True, slots=True)
class Sampling:
    temperature: float
    top_p: float
    seed: int | None


@dataclass(frozen=True, slots=True)
class ChatMarkup:
    template: str | None
    """The Jinja template the file carries."""
    bos: str
    eos: str
    """How the tokens that begin and end a text are written; empty where there are none."""
    control: tuple[str, ...]
    """How all control tokens are written."""


REPEAT_PENALTY = 1.05
"""Divides the logits of the reply's last REPEAT_WINDOW tokens. Models below a billion parameters fall into loops under
greedy decoding; 1.05 breaks those and leaves ordinary sentences alone. Tokens of the prompt are not penalised."""
REPEAT_WINDOW = 64
TOP_K = 40
"""Cut before top-p: sorting a vocabulary of 150,000 for every token costs more than the tail is worth."""


class LlamaRuntime:
    """Blocking. `n_batch` is the most tokens one `decode` takes, `sequences` the number of independent sequences."""

    def __init__(
        self, path: Path, *, threads: int, prefill_threads: int, n_ctx: int, n_batch: int, sequences: int
    ) -> None:
        """Loads the model. Raises EngineError with code `model` (no, truncated or foreign file) or `memory`."""
        self._model: Any = None
        self._context: Any = None
        self._batch: Any = None
        llama_cpp.llama_backend_init()
        llama_cpp.llama_log_set(_on_log, ctypes.c_void_p(0))
        self._model = _load(path)
        self._vocab: Any = llama_cpp.llama_model_get_vocab(self._model)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = params.n_ubatch = n_batch
        params.n_seq_max = params.n_outputs_max = sequences
        params.n_threads = threads
        params.n_threads_batch = prefill_threads
        params.kv_unified = True
        # On a CPU the fused attention that "auto" chooses slows with the conversation: from 38 to 55 ms a token and
        # from 80 to 212 ms for the last 7 tokens of a prompt after 850 tokens. The plain one stays at 36 and 95 ms.
        params.flash_attn_type = 0  # LLAMA_FLASH_ATTN_TYPE_DISABLED in llama.h
        params.no_perf = True
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        if not self._context:
            self.close()
            raise EngineError(ENGINE, "memory", f"no context of {n_ctx} tokens for {path.name}{_reason()}")
        self._memory: Any = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(n_batch, 0, 1)
        self.n_ctx = int(llama_cpp.llama_n_ctx(self._context))
        self.n_train = int(llama_cpp.llama_model_n_ctx_train(self._model))
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self._bos = self._text(int(llama_cpp.llama_vocab_bos(self._vocab)))
        self.can_share = not (
            llama_cpp.llama_model_is_recurrent(self._model) or llama_cpp.llama_model_is_hybrid(self._model)
        )
        """Whether one sequence may adopt the beginning of another (a recurrent state has no beginning)."""

    # --- vocabulary

    def tokenize(self, text: str, *, begin: bool) -> list[int]:
        """Token ids; markup such as <|im_end|> becomes its control token. `begin`: this is the beginning of a
        sequence, where some models want a token of their own (not added twice if the text has it)."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        ids = (llama_cpp.llama_token * size)()
        add = begin and not (self._bos and text.startswith(self._bos))
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), ids, size, add, True)
        if count < 0:
            raise EngineError(ENGINE, "tokenize", f"cannot tokenise {len(data)} bytes")
        return list(ids[:count])

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for; control tokens stand for none."""
        return self._piece(token, special=False)

    def is_end(self, token: int) -> bool:
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))

    def chat_markup(self) -> ChatMarkup:
        """What the file says about how a conversation is written. Reads the whole vocabulary."""
        template = llama_cpp.llama_model_chat_template(self._model, None)
        is_control = llama_cpp.llama_vocab_is_control
        return ChatMarkup(
            template=template.decode("utf-8") if template else None,
            bos=self._bos,
            eos=self._text(int(llama_cpp.llama_vocab_eos(self._vocab))),
            control=tuple(self._text(token) for token in range(self.n_vocab) if is_control(self._vocab, token)),
        )

    # --- the cache

    def keep(self, sequence: int, length: int) -> int:
        """Remove everything from position `length` on; returns how many tokens are left (0 if the model's memory
        cannot be cut in the middle)."""
        if llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1):
            return length
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        return 0

    def adopt(self, source: int, target: int, length: int) -> None:
        """Let the empty sequence `target` begin with the first `length` tokens of `source`; costs no cells."""
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, length)

    def clear(self) -> None:
        llama_cpp.llama_memory_clear(self._memory, False)

    # --- inference

    def decode(self, entries: Sequence[Entry]) -> None:
        """Run one batch. Raises CacheFull, or EngineError after which the sequences involved must be cleared."""
        batch = self._batch
        batch.n_tokens = len(entries)
        for i, entry in enumerate(entries):
            batch.token[i] = entry.token
            batch.pos[i] = entry.position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = entry.sequence
            batch.logits[i] = entry.output
        status = llama_cpp.llama_decode(self._context, batch)
        if status == 1:
            raise CacheFull
        if status != 0:
            raise EngineError(ENGINE, "decode", f"llama_decode returned {status}{_reason()}")

    def probabilities(self, index: int) -> NDArray[np.float64]:
        """Softmax over the vocabulary after entry `index` of the last batch: shape (n_vocab,)."""
        pointer = llama_cpp.llama_get_logits_ith(self._context, index)
        logits = np.ctypeslib.as_array(pointer, shape=(self.n_vocab,)).astype(np.float64)
        weights = np.exp(logits - logits.max())
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def new_sampler(self, sampling: Sampling) -> Any:
        """A chain to hand to `sample`; free it with `free_sampler`. Temperature 0 is greedy."""
        temperature, top_p = float(sampling.temperature), float(sampling.top_p)
        seed = llama_cpp.LLAMA_DEFAULT_SEED if sampling.seed is None else int(sampling.seed) & 0xFFFFFFFF
        chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        add = llama_cpp.llama_sampler_chain_add
        penalty = llama_cpp.llama_sampler_init_penalties(self.n_vocab, REPEAT_WINDOW, REPEAT_PENALTY, 0.0, 0.0)
        add(chain, penalty)
        if temperature <= 0:
            add(chain, llama_cpp.llama_sampler_init_greedy())
            return chain
        add(chain, llama_cpp.llama_sampler_init_top_k(TOP_K))
        add(chain, llama_cpp.llama_sampler_init_top_p(top_p, 1))
        add(chain, llama_cpp.llama_sampler_init_temp(temperature))
        add(chain, llama_cpp.llama_sampler_init_dist(seed))
        return chain

    def sample(self, sampler: Any, index: int) -> int:
        """The next token after entry `index` of the last batch."""
        return int(llama_cpp.llama_sampler_sample(sampler, self._context, index))

    def free_sampler(self, sampler: Any) -> None:
        llama_cpp.llama_sampler_free(sampler)

    def close(self) -> None:
        """Free everything. Safe to call twice."""
        if self._batch is not None:
            llama_cpp.llama_batch_free(self._batch)
        if self._context:
            llama_cpp.llama_free(self._context)
        if self._model:
            llama_cpp.llama_model_free(self._model)
        self._batch = self._context = self._model = None

    def _text(self, token: int) -> str:
        """A token as it is written in a template, control tokens included; empty for "no such token"."""
        return self._piece(token, special=True).decode("utf-8", "replace") if token >= 0 else ""

    def _piece(self, token: int, *, special: bool) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise EngineError(ENGINE, "model", f"cannot read {path}: {error.strerror or error}") from error
    if magic != b"GGUF":
        raise EngineError(ENGINE, "model", f"{path} is not a GGUF file")
    _last_errors.clear()
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
    if not model:
        raise EngineError(ENGINE, "model", f"{path} is broken or incomplete: fetch it again{_reason()}")
    return model


def _reason() -> str:
    return f" ({_last_errors[0]})" if _last_errors else ""
