"""The command line: finds the command, loads settings for it, turns errors into one line and an exit code.

A command is a module in this package with `register(commands)`: it adds its parser with `commands.add_parser(...)`
and `set_defaults(run=function)`, where `function(args) -> int` is the exit code. Before `run`, `args.settings` and
`args.provenance` are loaded, and `args.source` reads the settings again. An option whose `dest` is the name of a
setting sets that setting (its default must be None, so that "not given" can be told);
`set_defaults(needs_settings=False)` opts out for commands that read none.

Modules here import the heavy parts of the program inside their functions, so that `--help` answers at once.
Exit codes: 0 success, 1 failure, 2 wrong usage or settings, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from voice_agent.cli.unknown import unknown_arguments
from voice_agent.config import KEYS, Given, Source, load_settings
from voice_agent.errors import ConfigError, VoiceAgentError

COMMANDS = ("serve", "talk", "models", "report", "replay", "bench", "doctor", "config", "completion")
"""Subcommands in the order of `--help`; each is a module of this package."""

EXAMPLES = """\
examples:
  voice-agent serve                        answer calls on http://127.0.0.1:8080
  voice-agent serve --profile small        the same with the models for a small machine
  voice-agent serve --set min_delay=0.4    any setting by its key
  voice-agent talk --wav question.wav      the same without a server, a recording as the caller
  voice-agent doctor                       what is wrong with this machine and what to do
  voice-agent models pull                  fetch the model files
  voice-agent report CALL.jsonl            where the time of each turn went
  voice-agent replay CALL.jsonl            would today's core decide the same way
  voice-agent config show                  every setting, its value and where it was set
  source <(voice-agent completion bash)    complete all of this with the Tab key

Every setting is a flag or `--set KEY=VALUE`, an environment variable VOICE_AGENT_KEY, and a key of the TOML
file named by --config or VOICE_AGENT_CONFIG. Flags win over the environment, the environment over the file.
"""

Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
"""What `register` gets."""


class CommandParser(argparse.ArgumentParser):
    """A subcommand's parser: keeps line breaks in examples and accepts `--config` and `--set` after the command."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # An abbreviated flag in somebody's script breaks on the day a longer one is added.
        super().__init__(allow_abbrev=False, **options)
        shared = self.add_argument_group("settings")
        shared.add_argument("--config", type=Path, default=argparse.SUPPRESS, metavar="FILE", help="TOML settings file")
        shared.add_argument(
            "--set",
            dest="pairs",
            action="append",
            default=argparse.SUPPRESS,
            metavar="KEY=VALUE",
            help="any setting by its key; may be repeated",
        )


class _Version(argparse.Action):
    """Looks the version up only when asked: the look-up reads the installed package's metadata."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"voice-agent {version('voice-agent')}")
        except PackageNotFoundError:
            print("voice-agent (not installed: run from its source folder)")
        parser.exit(0)


def build_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser with the subcommands `names`; only their modules are imported."""
    parser = argparse.ArgumentParser(
        prog="voice-agent",
        description="A voice agent that runs on your own machine: speech in, speech out, over WebRTC.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", type=Path, default=None, metavar="FILE", help="TOML settings file")
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=CommandParser)
    for name in names:
        importlib.import_module(f"voice_agent.cli.{name}").register(commands)
    return parser


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run one command and return the exit code. Never raises VoiceAgentError; argparse exits by itself."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # half a character in a trace is no reason to break off
    parser = build_parser(_named_commands(words))
    args, rest = parser.parse_known_args(words)
    if rest:
        named = _named_commands(words)
        return _fail(ConfigError(unknown_arguments(parser, named[0] if len(named) == 1 else "", rest)), 2)
    if not hasattr(args, "run"):
        parser.print_help(sys.stderr)
        return 2
    try:
        if getattr(args, "needs_settings", True):
            given = _given(args)
            source = Source.of(given, os.environ if environ is None else environ, args.config)
            args.settings, args.provenance = load_settings(source.cli, source.environ, args.config)
            args.source = source
        code: int = args.run(args)
        sys.stdout.flush()
    except ConfigError as error:
        return _fail(error, 2)
    except VoiceAgentError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) has gone. Point stdout elsewhere, or Python's flush at exit fails too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _fail(error: Exception, code: int) -> int:
    print(f"voice-agent: {' '.join(str(error).split())}", file=sys.stderr)
    return code


def _named_commands(words: Sequence[str]) -> tuple[str, ...]:
    """The one command the line names, or all of them where help or an error message needs them."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "--config":
            skip = True
        elif not word.startswith("-"):
            return (word,) if word in COMMANDS else COMMANDS
    return COMMANDS


def _given(args: argparse.Namespace) -> dict[str, object]:
    """Settings from the command line: `--set` pairs, and options named after settings, which win."""
    given: dict[str, object] = {}
    for pair in getattr(args, "pairs", []):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: write --set KEY=VALUE")
        given[name.strip()] = Given(value, f"--set {name.strip()}")
    given.update((name, value) for name, value in vars(args).items() if name in KEYS and value is not None)
    return given
