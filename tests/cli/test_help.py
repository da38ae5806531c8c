"""Help that teaches: every command and action has examples, and every example in help and documentation is valid."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from voice_agent.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
WITH_FIGURES = {
    *("talk", "report", "replay", "bench", "doctor"),
    *("models list", "models pull", "models verify", "config show", "config init"),
}
"""What prints figures has --json."""


def _parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from _parsers(inner, f"{name} {word}".strip())


def _commands_in(text: str) -> list[list[str]]:
    """The words after `voice-agent` of every indented line; environment, redirection, comments and remarks left off."""
    found: list[list[str]] = []
    for line in text.splitlines():
        match = re.match(r"\s+(?:source <\()?(?:[A-Z_]+=\S+ )*voice-agent (?P<rest>[^>)]*)", line)
        if match and not line.strip().startswith("voice-agent: "):
            command = re.split(r"\s{2,}| #|\(", match["rest"].strip())[0]
            found.append(shlex.split(command))
    return found


PARSERS = dict(_parsers(build_parser()))


@pytest.mark.parametrize("name", PARSERS)
def test_every_command_and_action_has_examples_that_are_valid(name: str) -> None:
    text = PARSERS[name].format_help()
    assert "examples:" in text
    examples = _commands_in(text.partition("examples:")[2])
    assert examples
    for words in examples:
        build_parser().parse_args(words)
    if name:
        assert any(" ".join(words).startswith(name) for words in examples), "one of them is this command"


@pytest.mark.parametrize("name", PARSERS)
def test_help_fits_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert max(len(line) for line in PARSERS[name].format_help().splitlines()) <= 120


def test_what_prints_figures_prints_them_as_json() -> None:
    for name in WITH_FIGURES:
        options = {option for action in PARSERS[name]._actions for option in action.option_strings}
        assert "--json" in options, name


@pytest.mark.parametrize("document", ["docs/commands.md", "README.md"])
def test_commands_in_the_documentation_are_valid(document: str) -> None:
    commands = _commands_in((ROOT / document).read_text())
    assert commands
    for words in commands:
        build_parser().parse_args(words)


def test_the_documentation_knows_every_command() -> None:
    text = (ROOT / "docs/commands.md").read_text()
    missing = [name for name in COMMANDS if f"| `{name}` |" not in text]
    assert not missing
