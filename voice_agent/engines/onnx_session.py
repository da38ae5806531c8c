"""Opens ONNX models the way a small shared machine wants them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import onnxruntime as ort

from voice_agent.errors import EngineError


def open_session(
    engine: str, path: Path, threads: int, inputs: Collection[str], content: bytes | None = None, *, spin: bool = False
) -> ort.InferenceSession:
    """An inference session on the CPU with `threads` threads that sleep, not spin, between runs.

    `spin`: they spin between the steps of one run, which pays where there are thousands (Piper: 5 of 30 ms).
    `content` replaces the bytes of the file at `path` (a model changed in memory). `inputs` are names the model must
    have. Raises EngineError `load` when the file is missing, broken or a different model.
    """
    if not path.is_file():
        raise EngineError(engine, "load", f"there is no model file {path}")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Spinning threads would take the cores from the other engines between two short runs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        session = ort.InferenceSession(
            content if content is not None else str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise EngineError(
            engine, "load", f"{path} is not a usable ONNX model (broken or cut off?): {_first_line(error)}"
        ) from error
    missing = sorted(set(inputs) - {entry.name for entry in session.get_inputs()})
    if missing:
        raise EngineError(engine, "load", f"{path} is a different model: it has no input {', '.join(missing)}")
    return session


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
