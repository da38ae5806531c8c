"""One JSON line per thing that happened in a call: the record that reports, replay and regression tests read.

Lines: {"kind": "call", …} first, with the core's settings under `conversation`, so that the call can be replayed from
its trace alone; {"kind": "event", "now", "event": {"type", …fields}}; {"kind": "command", …};
{"kind": "report", "report": {…}} when a reply is over; {"kind": "note", …} for what helps understanding. Traces hold
what was said, so they are written only where a folder for them was set.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator
from io import TextIOBase
from pathlib import Path
from typing import Any, Protocol

from voice_agent.core import events
from voice_agent.core.commands import Command
from voice_agent.core.events import Event
from voice_agent.errors import VoiceAgentError

FORMAT = 1


class Trace(Protocol):
    def event(self, event: Event, now: float) -> None: ...

    def command(self, command: Command) -> None: ...

    def record(self, kind: str, **fields: Any) -> None: ...

    def close(self) -> None: ...


class NoTrace:
    """Records nothing."""

    def event(self, event: Event, now: float) -> None:
        pass

    def command(self, command: Command) -> None:
        pass

    def record(self, kind: str, **fields: Any) -> None:
        pass

    def close(self) -> None:
        pass


class FileTrace:
    """Line-buffered, so that a killed process loses at most the line being written.

    A disk error ends the trace with one note to `on_error`, never the call.
    """

    def __init__(self, path: Path, on_error: typing.Callable[[str], None]) -> None:
        self._on_error = on_error
        self._file: TextIOBase | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8", buffering=1)
        except OSError as error:
            on_error(f"no trace for this call: {error}")

    def event(self, event: Event, now: float) -> None:
        self.record("event", now=now, event=as_dict(event))

    def command(self, command: Command) -> None:
        self.record("command", command=as_dict(command))

    def record(self, kind: str, **fields: Any) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps({"kind": kind, **fields}, ensure_ascii=False) + "\n")
        except (OSError, ValueError) as error:  # ValueError: text that is no text, such as half a surrogate pair
            self._on_error(f"the trace of this call ends here: {error}")
            self.close()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._on_error(f"the trace of this call is incomplete: {error}")


def as_dict(item: Event | Command) -> dict[str, Any]:
    return {"type": type(item).__name__, **dataclasses.asdict(item)}


def event_from_dict(data: dict[str, Any]) -> Event:
    """The event that `as_dict` made; raises VoiceAgentError for anything else."""
    fields = dict(data)
    name = fields.pop("type", None)
    kind = _EVENTS.get(str(name))
    if kind is None:
        raise VoiceAgentError(f"unknown event {name!r} in trace")
    if kind is events.ClauseQueued:
        fields["words"] = tuple(events.WordMark(**word) for word in fields["words"])
    try:
        return typing.cast(Event, kind(**fields))
    except TypeError as error:
        raise VoiceAgentError(f"event {name} in trace does not fit: {error}") from error


def read_trace(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a trace as objects; raises VoiceAgentError with file and line for what is no trace.

    A last line that was cut off is left out: a killed process was writing it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if number > 1 and not line.endswith("\n"):
                        return
                    raise VoiceAgentError(f"{path}:{number} is no JSON: {error}") from error
                if not isinstance(entry, dict) or "kind" not in entry:
                    raise VoiceAgentError(f"{path}:{number} is no trace entry (an object with `kind`)")
                yield entry
    except (OSError, UnicodeDecodeError) as error:
        raise VoiceAgentError(f"cannot read trace {path}: {error}") from error


_EVENTS: dict[str, type] = {kind.__name__: kind for kind in typing.get_args(events.Event)}
