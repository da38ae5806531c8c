"""What may come next on a command line: read off the parsers themselves, so it cannot fall behind them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from voice_agent.config import KEYS

FILES = "files"
"""First line of an answer after which the shell adds names of files."""
WORDS = "words"


@dataclass(frozen=True, slots=True)
class Candidate:
    word: str
    """As it is typed; one that ends in `=` is not finished yet."""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    candidates: list[Candidate]
    files: bool
    """Whether names of files fit, too."""


def complete(parser: argparse.ArgumentParser, words: Sequence[str]) -> Completion:
    """Completions of the last of `words`, the words after the program's name (the last may be empty)."""
    *before, current = words or [""]
    pending: argparse.Action | None = None
    positionals = _positionals(parser)
    only_positionals = False
    for word in before:
        if pending is not None:
            pending = None
        elif word == "--":
            only_positionals = True
        elif word.startswith("-") and not only_positionals:
            pending = _takes_value(parser, word)
        elif positionals:
            action = positionals[0] if _repeats(positionals[0]) else positionals.pop(0)
            chosen = action.choices.get(word) if isinstance(action, argparse._SubParsersAction) else None
            if isinstance(chosen, argparse.ArgumentParser):
                parser, positionals = chosen, _positionals(chosen)
    name, equals, value = current.partition("=")
    if pending is None and equals and name.startswith("--"):
        pending = _takes_value(parser, name)
        return _matching(_values(pending, value), value, name + "=") if pending else Completion([], False)
    if pending is not None:
        return _matching(_values(pending, current), current)
    found = Completion([], False)
    if current.startswith("-") and not only_positionals:
        found = Completion(_options(parser), False)
    elif positionals:
        found = _values(positionals[0], current)
    return _matching(found, current)


def answer(found: Completion) -> str:
    """For a shell: what kind, then a line `WORD<tab>HELP` for each candidate."""
    lines = [FILES if found.files else WORDS]
    lines += [f"{candidate.word}\t{candidate.help}" for candidate in found.candidates]
    return "\n".join(lines)


def _matching(found: Completion, start: str, prefix: str = "") -> Completion:
    fitting = [
        Candidate(prefix + candidate.word, candidate.help)
        for candidate in found.candidates
        if candidate.word.startswith(start)
    ]
    return Completion(fitting, found.files)


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not action.option_strings]


def _repeats(action: argparse.Action) -> bool:
    return action.nargs in ("*", "+")


def _takes_value(parser: argparse.ArgumentParser, option: str) -> argparse.Action | None:
    for action in parser._actions:
        if option in action.option_strings and action.nargs != 0:
            return action
    return None


def _options(parser: argparse.ArgumentParser) -> list[Candidate]:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [
        Candidate(option, _help(action)) for action in shown for option in action.option_strings if option[:2] == "--"
    ]


def _values(action: argparse.Action, current: str) -> Completion:
    if isinstance(action, argparse._SubParsersAction):
        return Completion([Candidate(str(item.dest), _help(item)) for item in action._choices_actions], False)
    if action.choices is not None:
        return Completion([Candidate(str(choice)) for choice in action.choices], False)
    if action.dest == "pairs":
        return Completion(_pairs(current), False)
    if action.type is Path or action.metavar in ("FILE", "DIR"):
        return Completion([], True)
    return Completion(_of_setting(action.dest), False)


def _pairs(current: str) -> list[Candidate]:
    """Settings for `--set`; behind the `=`, the values that can be listed."""
    key, equals, _ = current.partition("=")
    if not equals:
        return [Candidate(f"{name}=") for name in KEYS]
    return [Candidate(f"{key}={candidate.word}") for candidate in _of_setting(key)]


def _of_setting(name: str) -> list[Candidate]:
    kind: Any = KEYS[name].type if name in KEYS else None
    choices: Iterable[str] = ()
    if get_origin(kind) is Literal:
        choices = get_args(kind)
    elif kind is bool:
        choices = ("true", "false")
    return [Candidate(choice) for choice in choices]


def _help(action: argparse.Action) -> str:
    return " ".join((action.help or "").replace("%%", "%").split())
