"""What the caller says, and when: scripts in TOML. `default.toml` beside this file shows every key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from voice_agent.errors import ConfigError

DEFAULT = Path(__file__).with_name("default.toml")
TAGS = ("plain", "paused", "short", "barge")


@dataclass(frozen=True, slots=True)
class When:
    """The moment a turn begins."""

    after: Literal["line", "agent_done", "agent_started"]
    """`line`: the end of the previous line (or the connection); the others: the agent's reply to it."""
    seconds: float = 0.0
    """Later than that."""


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    when: When
    say: str = ""
    """Text for the voice; empty: `wav` has it."""
    wav: Path | None = None
    tag: str = "plain"
    speed: float = 1.0
    """2.0 is twice as fast; only for text."""
    pause: float = 0.0
    """Seconds to which the quietest spot in the middle of the line is widened; 0: left alone."""
    reply: bool = True
    """Whether the agent should answer."""


@dataclass(frozen=True, slots=True)
class Script:
    turns: tuple[Turn, ...]
    reply_timeout: float = 12.0
    """Seconds after which a reply counts as missing."""
    max_reply: float = 40.0
    """Longest reply that is waited for."""
    done: float = 1.2
    """Seconds of silence that end a reply."""
    noise_db: float | None = None
    """White noise under the caller's voice, dBFS."""


def load_script(path: Path) -> Script:
    """Raises ConfigError that names the file, the turn and the key."""
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read script {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"script {path} is not TOML: {error}") from error
    return parse_script(table, path)


def parse_script(table: Mapping[str, Any], path: Path) -> Script:
    """`path`: where the script stands; WAV names are relative to its folder."""
    _check_keys(table, {"turn", "reply_timeout", "max_reply", "done", "noise_db"}, str(path))
    turns = table.get("turn")
    if not isinstance(turns, list) or not turns:
        raise ConfigError(f"{path}: a script needs at least one [[turn]]")
    options = {
        key: _number(table[key], f"{path}: {key}", low, high)
        for key, low, high in (
            ("reply_timeout", 0.1, 120.0),
            ("max_reply", 0.1, 600.0),
            ("done", 0.1, 10.0),
            ("noise_db", -120.0, 0.0),
        )
        if key in table
    }
    parsed = tuple(_turn(turn, number, path) for number, turn in enumerate(turns, 1))
    seen: set[str] = set()
    for turn in parsed:
        if turn.id in seen:
            raise ConfigError(f"{path}: two turns have the id {turn.id!r}")
        seen.add(turn.id)
    if parsed[0].when.after != "line":
        raise ConfigError(f"{path}: the first turn has no reply to wait for: give `when` in seconds")
    return Script(parsed, **options)


def parse_when(value: object, where: str) -> When:
    """`1.5`, `"agent done"`, `"agent started + 0.8"`. Raises ConfigError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return When("line", _number(value, where, 0.0, 600.0))
    match = re.fullmatch(r"agent (done|started)(?:\s*\+\s*(\d+(?:\.\d+)?))?", str(value).strip())
    if match is None:
        raise ConfigError(
            f"{where} is {value!r}: give seconds after the previous line, "
            '"agent done", "agent started", or one of these with "+ SECONDS"'
        )
    return When("agent_done" if match[1] == "done" else "agent_started", float(match[2] or 0))


def _turn(entry: object, number: int, path: Path) -> Turn:
    where = f"{path}: turn {number}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is not a table")
    _check_keys(entry, {"id", "say", "wav", "when", "tag", "speed", "pause", "reply"}, where)
    say, wav = entry.get("say", ""), entry.get("wav", "")
    if not isinstance(say, str) or not isinstance(wav, str) or bool(say.strip()) == bool(wav.strip()):
        raise ConfigError(f"{where}: give either `say` (text) or `wav` (a file)")
    tag = entry.get("tag", "plain")
    if tag not in TAGS:
        raise ConfigError(f"{where}: tag is {tag!r}; it must be one of {', '.join(TAGS)}")
    reply = entry.get("reply", True)
    if not isinstance(reply, bool):
        raise ConfigError(f"{where}: reply is {reply!r}; it must be true or false")
    if "speed" in entry and wav:
        raise ConfigError(f"{where}: speed is for text; a recording keeps its own")
    return Turn(
        id=str(entry.get("id", f"{number:02}")),
        when=parse_when(entry.get("when", "agent done" if number > 1 else 1.0), f"{where}: when"),
        say=say.strip(),
        wav=path.parent / wav if wav else None,
        tag=tag,
        speed=_number(entry.get("speed", 1.0), f"{where}: speed", 0.25, 4.0),
        pause=_number(entry.get("pause", 0.0), f"{where}: pause", 0.0, 10.0),
        reply=reply,
    )


def _number(value: object, where: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigError(f"{where} is {value!r}; it must be a number from {low:g} to {high:g}")
    return float(value)


def _check_keys(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(table.keys() - known):
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
