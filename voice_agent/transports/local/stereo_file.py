"""A call as a stereo WAV: the caller left, the agent right."""

from __future__ import annotations

import wave
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from voice_agent.engines.ports import Pcm16
from voice_agent.errors import VoiceAgentError


class StereoFile:
    """16-bit PCM, written as the call goes. All methods raise VoiceAgentError when the disk does not take it."""

    def __init__(self, path: Path, rate: int) -> None:
        self._path = path
        try:
            self._file = wave.open(str(path), "wb")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise self._failed(error) from error
        self._file.setnchannels(2)
        self._file.setsampwidth(2)
        self._file.setframerate(rate)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, left: Pcm16, right: Pcm16) -> None:
        """Both of one length; they sound at the same time."""
        try:
            self._file.writeframesraw(np.stack([left, right], axis=1).astype("<i2").tobytes())
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Complete the header. Safe to call twice."""
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> VoiceAgentError:
        return VoiceAgentError(f"cannot write {self._path}: {error.strerror or error}")
