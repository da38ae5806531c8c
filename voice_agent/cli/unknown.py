"""What to say about arguments no command knows: the nearest option, or how the setting is written."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable

from voice_agent.config import KEYS


def unknown_arguments(parser: argparse.ArgumentParser, command: str, rest: Iterable[str]) -> str:
    """One line about the first of the arguments `rest` that `command` did not understand."""
    word = next((word for word in rest if word.startswith("-")), next(iter(rest)))
    where = f"`voice-agent {command} --help`" if command else "`voice-agent --help`"
    if not word.startswith("--"):
        return f"{word} is one word too many; {where} shows what may be given"
    flag, equals, value = word.partition("=")
    key = flag[2:].replace("-", "_").lower()
    options = _options(parser, command)
    spelt = f"--{key.replace('_', '-')}"
    if spelt in options:
        return f"there is no option {flag}; did you mean {spelt}?"
    if key in KEYS:
        return f"there is no option {flag}; write --set {key}={value if equals else 'VALUE'}"
    close = difflib.get_close_matches(flag.lower(), options, n=1, cutoff=0.6)
    if close:
        return f"there is no option {flag}; did you mean {close[0]}?"
    near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.6)
    if near:
        return f"there is no option {flag}; did you mean --set {near[0]}=VALUE?"
    return f"there is no option {flag}; {where} lists all"


def _options(parser: argparse.ArgumentParser, command: str) -> list[str]:
    """All long options that may stand in the line."""
    parsers = [parser]
    for action in parser._actions:  # argparse has no public way to its subcommands
        if isinstance(action, argparse._SubParsersAction) and command in action.choices:
            parsers.append(action.choices[command])
    return [option for each in parsers for option in each._option_string_actions if option.startswith("--")]
