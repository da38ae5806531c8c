"""How a pull looks on stderr: one line that is rewritten on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

from voice_agent.modelstore.progress import Phase, Progress

_LINE_EVERY = 5.0
"""Seconds between lines of a log."""
_REDRAW_EVERY = 0.1
"""Seconds between two drawings on a terminal."""
_RATE_OVER = 5.0
"""Seconds over which the rate is taken: long enough to be calm, short enough to show a stall."""
_CLEAR = "\r\x1b[K"


class ProgressLines:
    """Takes the store's Progress and writes it. Call `close` at the end, also after an error."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._drawn = False
        """Something stands on the line that is rewritten."""
        self._last = float("-inf")
        self._shown = ("", 0)
        """Source and bytes of the last line."""
        self._fetched: set[str] = set()
        """Models something was downloaded for: the others need no line."""
        self._samples: deque[tuple[float, int]] = deque()

    def __call__(self, progress: Progress) -> None:
        match progress.phase:
            case Phase.DOWNLOAD:
                self._download(progress)
            case Phase.CHECK if self._terminal:
                self._draw(progress.message)
            case Phase.WAIT | Phase.NOTE:
                self._print(progress.message)
            case Phase.READY if progress.model in self._fetched:
                self._print(f"{progress.model}: ready")

    def close(self) -> None:
        """Leave the terminal with an empty line."""
        if self._drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._drawn = False

    def _download(self, progress: Progress) -> None:
        now = self._clock()
        if self._samples and progress.done < self._samples[-1][1]:
            self._samples.clear()  # a source was given up and its bytes with it
        self._samples.append((now, progress.done))
        while len(self._samples) > 2 and now - self._samples[0][0] > _RATE_OVER:
            self._samples.popleft()
        self._fetched.add(progress.model)
        source, done = self._shown
        due = now - self._last >= (_REDRAW_EVERY if self._terminal else _LINE_EVERY)
        complete = progress.done == progress.total != done
        if not (due or complete or progress.source != source):
            return
        self._last, self._shown = now, (progress.source, progress.done)
        line = f"{progress.model}  {progress.done / 1e6:.1f} of {progress.total / 1e6:.1f} MB{self._rate()}  "
        line += f"from {progress.source}"
        if self._terminal:
            self._draw(line)
        else:
            self._print(line)

    def _rate(self) -> str:
        (start, before), (end, after) = self._samples[0], self._samples[-1]
        return f"  {(after - before) / (end - start) / 1e6:.1f} MB/s" if end > start else ""

    def _draw(self, line: str) -> None:
        columns = shutil.get_terminal_size().columns
        self._stream.write(_CLEAR + (line if len(line) < columns else line[: columns - 2] + "…"))
        self._stream.flush()
        self._drawn = True

    def _print(self, line: str) -> None:
        self.close()
        self._stream.write(line + "\n")
        self._stream.flush()
