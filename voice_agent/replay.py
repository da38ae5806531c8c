"""Feeds the events of a recorded call to a fresh core and compares what it decides with what was decided then.

The core is told every moment it knows, so an unchanged one repeats its commands to the last digit. A difference means
that the core, or a text rule it uses, decides otherwise than it did when the trace was written.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voice_agent.core.commands import Message
from voice_agent.core.conversation import Conversation, ConversationSettings
from voice_agent.errors import VoiceAgentError
from voice_agent.session.trace import as_dict, event_from_dict, read_trace

Fields = dict[str, Any]
"""A command or event as its trace line holds it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One event that was answered otherwise."""

    line: int
    """Of the event in the trace, from 1."""
    now: float
    """Session clock, seconds, when the event was handled."""
    event: Fields
    recorded: list[Fields]
    replayed: list[Fields]


@dataclass(frozen=True, slots=True)
class Replay:
    path: Path
    session_id: str
    events: int
    commands: int
    """As recorded."""
    began: float
    """`now` of the first event."""
    complete: bool
    """False: the trace ends in the middle of the call, and its last event is not compared."""
    differences: list[Difference]


@dataclass(slots=True)
class _Step:
    line: int
    now: float
    event: Fields
    commands: list[Fields]


def replay(path: Path) -> Replay:
    """Replay one trace. Raises VoiceAgentError for a file that is no trace, or one without the core's settings."""
    try:
        return _replay(path)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        # The core trusts its events; those of a file may hold anything where a number or a text belongs.
        raise VoiceAgentError(f"{path} holds what no call has recorded: {type(error).__name__}: {error}") from error


def _replay(path: Path) -> Replay:
    settings: ConversationSettings | None = None
    session_id, complete = path.stem, False
    earlier: tuple[Message, ...] = ()
    steps: list[_Step] = []
    for line, entry in enumerate(read_trace(path), 1):
        match entry:
            case {"kind": "call", "conversation": dict(recorded)}:
                settings = settings_from_dict(recorded, path)
                session_id = str(entry.get("session_id", session_id))
                earlier = _messages(entry.get("earlier", []), path)
            case {"kind": "event", "now": float() | int() as now, "event": dict(event)}:
                steps.append(_Step(line, float(now), event, []))
            case {"kind": "command", "command": dict(command)} if steps:
                steps[-1].commands.append(command)
            case {"kind": "event" | "command"}:
                raise VoiceAgentError(f"{path}:{line} is no {entry['kind']} this version can read")
            case {"kind": "end"}:
                complete = True
    if settings is None:
        raise VoiceAgentError(
            f"{path} does not hold the settings of its call, so it cannot be replayed; record one with "
            "`voice-agent serve --trace-dir DIR` of this version"
        )
    compared = steps if complete else steps[:-1]  # the process may have died before it wrote all commands
    return Replay(
        path,
        session_id,
        len(compared),
        sum(len(step.commands) for step in compared),
        steps[0].now if steps else 0.0,
        complete,
        _differences(Conversation(settings, earlier), compared, path),
    )


def _messages(recorded: Any, path: Path) -> tuple[Message, ...]:
    """What was said before a connection was lost; a call that came back begins with it."""
    try:
        return tuple(Message(**message) for message in recorded)
    except TypeError as error:
        raise VoiceAgentError(f"{path} holds earlier messages this version cannot read: {error}") from error


def _differences(conversation: Conversation, steps: list[_Step], path: Path) -> list[Difference]:
    found: list[Difference] = []
    for step in steps:
        try:
            event = event_from_dict(step.event)
        except (VoiceAgentError, KeyError, TypeError) as error:
            raise VoiceAgentError(f"{path}:{step.line} is no event this version can read: {error}") from error
        commands = [_as_written(as_dict(command)) for command in conversation.handle(event, step.now)]
        if commands != step.commands:
            found.append(Difference(step.line, step.now, step.event, step.commands, commands))
    return found


def _as_written(command: Fields) -> Fields:
    """As it looks after a trip through the file: tuples are lists there."""
    written: Fields = json.loads(json.dumps(command))
    return written


def settings_from_dict(recorded: Fields, path: Path) -> ConversationSettings:
    """The settings that `dataclasses.asdict` made.

    What is missing (a setting younger than the trace) has its default; what is unknown raises VoiceAgentError, for a
    core without that setting is another core.
    """
    settings: ConversationSettings = _build(ConversationSettings, recorded, f"{path}: conversation")
    return settings


def _build(kind: type[Any], recorded: Fields, where: str) -> Any:
    hints = typing.get_type_hints(kind)
    values: Fields = {}
    for name, value in recorded.items():
        if name not in hints:
            raise VoiceAgentError(f"{where}.{name} is a setting this version does not have")
        if dataclasses.is_dataclass(hints[name]) and isinstance(value, dict):
            values[name] = _build(typing.cast(type[Any], hints[name]), value, f"{where}.{name}")
        elif _fits(value, hints[name]):
            values[name] = value
        else:
            raise VoiceAgentError(f"{where}.{name} = {value!r} does not fit")
    return kind(**values)


def _fits(value: object, hint: Any) -> bool:
    """Whether a JSON value is of a plain type; a whole number is a number too."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, (*kinds, int) if float in kinds else kinds)


def as_json(result: Replay) -> Fields:
    return {
        "trace": str(result.path),
        "session_id": result.session_id,
        "events": result.events,
        "commands": result.commands,
        "complete": result.complete,
        "same": not result.differences,
        "differences": [dataclasses.asdict(difference) for difference in result.differences],
    }


def as_text(result: Replay, most: int) -> str:
    """For people: one line when all is as recorded, else the first `most` differences."""
    ending = "" if result.complete else ", the trace ends in the middle of the call"
    head = f"{result.path}: {result.events} events, {result.commands} commands{ending}"
    if not result.differences:
        return f"{head}: as recorded"
    count = len(result.differences)
    rows = [f"{head}: {count} event{'s' if count > 1 else ''} answered otherwise"]
    for difference in result.differences[:most]:
        after = difference.now - result.began
        rows.append(f"  line {difference.line}, {after:.3f} s: {_shown(difference.event)}")
        rows += [f"    recorded  {text}" for text in _listed(difference.recorded)]
        rows += [f"    replayed  {text}" for text in _listed(difference.replayed)]
    if count > most:
        rows.append(f"  … and {count - most} more; what follows the first difference is often only its consequence")
    return "\n".join(rows)


def _listed(commands: list[Fields]) -> list[str]:
    return [_shown(command) for command in commands] or ["nothing"]


def _shown(item: Fields) -> str:
    fields = ", ".join(f"{name}={_short(value)}" for name, value in item.items() if name != "type")
    return f"{item.get('type', '?')}({fields})"


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"[{len(value)}: … {_short(value[-1])}]" if value else "[]"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 70 else f"{text[:32]} … {text[-32:]}"
