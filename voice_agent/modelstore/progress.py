"""What a pull tells while it works, and the running total behind the figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class Phase(Enum):
    CHECK = "check"
    """Files that are there are being hashed."""
    WAIT = "wait"
    """Another process holds the store's lock."""
    DOWNLOAD = "download"
    NOTE = "note"
    """Something worth knowing that is not an error: `message` says what."""
    READY = "ready"
    """All files of `model` are there and whole."""


@dataclass(frozen=True, slots=True)
class Progress:
    phase: Phase
    model: str = ""
    message: str = ""
    source: str = ""
    """Who delivers, while downloading."""
    done: int = 0
    """Bytes downloaded in this pull, all models together."""
    total: int = 0
    """Bytes this pull has to download, as far as known now; a change of source changes it."""


Report = Callable[[Progress], None]


def no_report(_: Progress) -> None:
    """For callers who do not want to know."""


class SourceFailed(Exception):
    """One source could not deliver; `str(error)` is a reason fit for a user. The next source is tried."""


class WrongContent(SourceFailed):
    """A source delivered something else than the manifest promises."""


@dataclass(slots=True)
class Tally:
    """Adds up what several downloads have delivered. A key is a download: an archive or a file."""

    _expected: dict[str, int] = field(default_factory=dict)
    _arrived: dict[str, int] = field(default_factory=dict)

    def expect(self, key: str, size: int) -> None:
        self._expected[key] = size

    def arrived(self, key: str, size: int) -> None:
        self._arrived[key] = min(size, self._expected.get(key, size))

    def forget(self, key: str) -> None:
        """The download will not happen: take it out of both sums."""
        self._expected.pop(key, None)
        self._arrived.pop(key, None)

    @property
    def done(self) -> int:
        return sum(self._arrived.values())

    @property
    def total(self) -> int:
        return sum(self._expected.values())
