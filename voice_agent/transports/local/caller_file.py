"""A recording as the caller's voice, in frames of 20 ms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import av
import numpy as np

from voice_agent.engines.ports import Pcm16
from voice_agent.errors import VoiceAgentError


@contextmanager
def open_caller_file(path: Path, rate: int, frame: int) -> Iterator[Iterator[Pcm16]]:
    """Frames of `frame` samples, mono int16 at `rate` Hz, of whatever FFmpeg can decode; the last one is filled up.

    Channels are mixed. The file is decoded as it is read, so its length does not matter. Raises VoiceAgentError, also
    from the iterator where the file breaks off in the middle.
    """
    try:
        container = av.open(str(path))
    except (OSError, ValueError, av.FFmpegError) as error:
        raise _unreadable(path, error) from error
    with container:
        if not container.streams.audio:
            raise VoiceAgentError(f"there is no sound in {path}")
        yield _frames(container, path, rate, frame)


def _frames(container: av.container.InputContainer, path: Path, rate: int, frame: int) -> Iterator[Pcm16]:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
    held: Pcm16 = np.zeros(0, np.int16)
    try:
        for decoded in _with_end(container):
            pieces = [part.to_ndarray().reshape(-1) for part in resampler.resample(decoded)]
            held = np.concatenate([held, *pieces]).astype(np.int16, copy=False)
            whole = len(held) // frame * frame
            yield from held[:whole].reshape(-1, frame)
            held = held[whole:].copy()
    except (OSError, ValueError, av.FFmpegError) as error:
        raise _unreadable(path, error) from error
    if len(held):
        yield np.concatenate([held, np.zeros(frame - len(held), np.int16)])


def _with_end(container: av.container.InputContainer) -> Iterator[av.AudioFrame | None]:
    """All frames, then None, which empties the resampler."""
    yield from container.decode(audio=0)
    yield None


def _unreadable(path: Path, error: Exception) -> VoiceAgentError:
    why = getattr(error, "strerror", None) or str(error)
    return VoiceAgentError(f"cannot read {path}: {why}. Any sound file that FFmpeg knows will do, such as a WAV.")
