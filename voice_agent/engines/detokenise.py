"""Token bytes to text: whole characters, and nothing of a stop string.

A token of a byte-level vocabulary may end in the middle of a character, and a stop string may begin in the middle of
one token and end in the next. Text is released as soon as neither can still happen.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokeniser:
    """Pure, one per reply. After `stopped` is true, `feed` and `finish` return nothing more."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = tuple(text for text in stop if text)
        # Bytes that can never become a character are dropped: a replacement mark would be read aloud.
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._held = ""
        self.stopped = False

    def feed(self, piece: bytes) -> str:
        """The text that is certain once `piece` has arrived; may be empty."""
        if self.stopped:
            return ""
        self._held += self._decoder.decode(piece)
        found = [at for text in self._stop if (at := self._held.find(text)) >= 0]
        if found:
            self.stopped = True
            ready, self._held = self._held[: min(found)], ""
            return ready
        keep = self._possible_stop()
        ready, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return ready

    def finish(self) -> str:
        """What was held back for a stop string that never came; half a character is dropped."""
        ready, self._held = self._held, ""
        return ready

    def _possible_stop(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = max((len(text) - 1 for text in self._stop), default=0)
        for length in range(min(longest, len(self._held)), 0, -1):
            end = self._held[-length:]
            if any(text.startswith(end) for text in self._stop):
                return length
        return 0
