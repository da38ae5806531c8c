"""A faster copy of a GGUF: the same weights rounded to Q4_0, which llama.cpp repacks for the CPU's vector units.

Models whose rows are not multiples of 256 (Qwen 0.5B has 896) cannot use the K-quants their file name promises; they
hold Q5_0 and Q8_0 instead, for which there is no repacked kernel. The copy takes seconds to make, once. Decision 0009
has what it gains and costs.
"""

from __future__ import annotations

import ctypes
import fcntl
import glob
import logging
import os
from pathlib import Path

import llama_cpp

log = logging.getLogger(__name__)


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _silent(_level: int, _text: bytes, _data: object) -> None:
    """The quantiser prints a line per tensor; whether it failed is in its result."""


Q4_0 = 2  # LLAMA_FTYPE_MOSTLY_Q4_0 in llama.h
OUTPUT_Q5_0 = 6  # GGML_TYPE_Q5_0 in ggml.h
RECIPE = "q4_0-o5_0"
"""Named in the file: a new recipe makes new copies."""


def fast_copy(source: Path, folder: Path, threads: int) -> Path:
    """The copy of `source` in `folder`, made now if it is not there; `source` itself if it cannot be made.

    The name holds the source's size and time of change, so a new source gets a new copy. Two processes make one.
    """
    state = source.stat()
    target = folder / f"{source.stem}.{state.st_size}-{state.st_mtime_ns}.{RECIPE}.gguf"
    if target.is_file():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.is_file():
                _make(source, target, threads)
    except OSError as error:
        log.warning("! no faster copy of the language model (%s); the file is used as it is", error)
        return source
    return target


def _make(source: Path, target: Path, threads: int) -> None:
    """Atomic: an interrupted copy leaves a `.part` that the next one overwrites. Raises OSError."""
    part = target.with_suffix(".part")
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype, parameters.nthread, parameters.allow_requantize = Q4_0, threads, True
    # The output layer is read whole for every token. llama.cpp would keep it at 8 bits: a tenth slower, same replies.
    parameters.output_tensor_type = OUTPUT_Q5_0
    llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
    log.info("= making a faster copy of the language model, once")
    try:
        failed = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(part), ctypes.byref(parameters))
        if failed or not part.is_file():
            raise OSError(f"llama.cpp could not write {part}")
        part.replace(target)
        for outdated in target.parent.glob(f"{glob.escape(source.stem)}.*.gguf"):
            if outdated != target:
                outdated.unlink()  # whoever still has it open keeps it
    finally:
        part.unlink(missing_ok=True)
