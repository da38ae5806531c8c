"""Text under rewriting that remembers where each of its characters comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Part = int | str
"""Of a replacement: the number of a group whose characters stay as they are, or new text for the whole match."""


class Rewriting:
    """Applies regular expressions one after the other to `text`.

    `starts[i]`, `ends[i]` is the half-open range of the original that character `i` stands for: one character where
    it was kept, the whole match where it is new. Both sequences never decrease.
    """

    def __init__(self, original: str) -> None:
        self.text = original
        self.starts = list(range(len(original)))
        self.ends = list(range(1, len(original) + 1))

    def replace(self, pattern: re.Pattern[str], *parts: Part) -> None:
        """Put `parts` in the place of every match; no parts: delete it. Groups must be named in their order."""
        self.rewrite(pattern, lambda _: parts)

    def rewrite(self, pattern: re.Pattern[str], parts_of: Callable[[re.Match[str]], Sequence[Part] | None]) -> None:
        """Put `parts_of(match)` in the place of every match; None leaves it as it is. Empty matches are not allowed."""
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []

        def keep(begin: int, end: int) -> None:
            text.append(self.text[begin:end])
            starts.extend(self.starts[begin:end])
            ends.extend(self.ends[begin:end])

        done = 0
        for match in pattern.finditer(self.text):
            parts = parts_of(match)
            if parts is None:
                continue
            keep(done, match.start())
            done = match.end()
            for part in parts:
                if isinstance(part, int):
                    keep(*match.span(part))
                else:
                    text.append(part)
                    starts.extend([self.starts[match.start()]] * len(part))
                    ends.extend([self.ends[match.end() - 1]] * len(part))
        if done:
            keep(done, len(self.text))
            self.text, self.starts, self.ends = "".join(text), starts, ends
