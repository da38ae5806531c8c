"""Settings that change while calls go on: read again when asked, or when the settings file has changed.

What a call is made of (prompt, greeting, language, speed, turn taking, budget) counts for further calls at once; the
prompt reaches running calls with their next reply. A new voice is loaded and warmed before it takes over, and the old
one is closed when its last call has ended. Everything else belongs to the process and waits for a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from voice_agent.config import KEYS, Source
from voice_agent.engines.ports import TextToSpeech
from voice_agent.errors import VoiceAgentError
from voice_agent.settings import Settings

log = logging.getLogger(__name__)

PERIOD = 1.0
"""Seconds between looks at the settings file: one stat."""

VOICE_KEY = "tts"
RELOADABLE = frozenset(name for name, key in KEYS.items() if key.group in ("agent", "turns", "budget")) | {VOICE_KEY}


@dataclass(frozen=True, slots=True)
class Change:
    settings: Settings
    """The running settings with everything new that can be taken over."""
    taken: tuple[str, ...]
    """Keys that differ and are taken over."""
    left: tuple[str, ...]
    """Keys that differ and need a restart."""


def compare(running: Settings, wanted: Settings) -> Change:
    settings, taken, left = running, [], []
    for name, key in KEYS.items():
        value = getattr(getattr(wanted, key.group), name)
        if value == getattr(getattr(running, key.group), name):
            continue
        if name not in RELOADABLE:
            left.append(name)
            continue
        taken.append(name)
        group = replace(getattr(settings, key.group), **{name: value})
        settings = replace(settings, **{key.group: group})
    return Change(settings, tuple(taken), tuple(left))


class FileWatch:
    """Notices that a file has changed and come to rest: editors and copies write in several steps."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = self._seen = self._look()

    def changed(self) -> bool:
        """One look; True once per change, when two looks in a row saw the same."""
        before, self._seen = self._seen, self._look()
        if self._seen == self._known or self._seen != before:
            return False
        self._known = self._seen
        return True

    def _look(self) -> tuple[int, ...] | None:
        try:
            status = self._file.stat()
        except OSError:
            return None  # gone, for the moment or for good
        # The last one moves with every change, even where a tool sets the time of the file back.
        return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


class Voices(Protocol):
    """The voice of further calls, and those that calls still speak with."""

    async def load_voice(self, settings: Settings) -> TextToSpeech:
        """Load and warm the configured voice, beside the others. Raises VoiceAgentError."""

    def use_voice(self, voice: TextToSpeech) -> TextToSpeech:
        """From now on this one; returns the one before."""

    async def drop_voice(self, voice: TextToSpeech) -> None:
        """Close one that nobody uses any more."""


class RunningCalls(Protocol):
    def change_prompt(self, prompt: str) -> None: ...

    async def wait_unused(self, voice: TextToSpeech) -> None: ...


class Reloader:
    def __init__(
        self,
        source: Source,
        running: Settings,
        voices: Voices,
        calls: RunningCalls,
        take_over: Callable[[Settings], None],
    ) -> None:
        """`take_over` makes further calls with these settings and the voice in use."""
        self._source = source
        self._running = running
        self._voices = voices
        self._calls = calls
        self._take_over = take_over
        self._watch = FileWatch(source.file) if source.file else None
        self._dropping: set[asyncio.Task[None]] = set()

    async def follow(self, asked: asyncio.Event, period: float = PERIOD) -> None:
        """Reload whenever `asked` is set or the file has changed, until cancelled."""
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(period):
                        await asked.wait()
                by_hand = asked.is_set()
                asked.clear()
                changed = self._watch is not None and self._watch.changed()
                if by_hand or changed:
                    await self.reload(tell_if_same=by_hand)
        finally:
            for task in self._dropping:
                task.cancel()

    async def reload(self, *, tell_if_same: bool = False) -> None:
        """Read the settings and take over what can be; whatever is wrong with them is one line in the log."""
        try:
            wanted = await asyncio.to_thread(self._source.load)
            change = compare(self._running, wanted)
            if change.taken:
                await self._apply(change)
        except VoiceAgentError as error:
            log.error("! settings not reloaded, all stays as it was: %s", " ".join(str(error).split()))
            return
        except Exception:  # a fault of ours must not take running calls down
            log.exception("! settings not reloaded")
            return
        if change.taken:
            log.info("= settings reloaded: %s", ", ".join(change.taken))
        if change.left:
            log.warning("! changed, but not before a restart: %s", ", ".join(change.left))
        if tell_if_same and not change.taken and not change.left:
            where = f"{self._source.file} says what is in force" if self._source.file else "no settings file is in use"
            log.info("= nothing to reload: %s", where)

    async def _apply(self, change: Change) -> None:
        old: TextToSpeech | None = None
        if VOICE_KEY in change.taken:
            old = self._voices.use_voice(await self._voices.load_voice(change.settings))
        self._running = change.settings
        self._take_over(change.settings)
        if "system_prompt" in change.taken:
            self._calls.change_prompt(change.settings.agent.system_prompt)
        if old is not None:
            task = asyncio.create_task(self._drop(old))
            self._dropping.add(task)
            task.add_done_callback(self._dropping.discard)

    async def _drop(self, voice: TextToSpeech) -> None:
        await self._calls.wait_unused(voice)
        await self._voices.drop_voice(voice)
        log.info("= the former voice is closed")


def reload_on_hangup(reload: asyncio.Event, stop: asyncio.Event) -> None:
    """SIGHUP means "read your settings again", unless it says that the terminal we belong to is gone."""
    # Ignored at start means nohup: the agent is to outlive its terminal.
    had_terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN

    def hung_up() -> None:
        if had_terminal and not _has_terminal():
            stop.set()
        else:
            reload.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hung_up)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
