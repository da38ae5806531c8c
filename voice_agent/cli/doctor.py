"""`voice-agent doctor`: what is wrong here, or on the way to a server, and what to do."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands
    from voice_agent.doctor.check import Check
    from voice_agent.settings import Settings

ABOUT = """\
Look at this machine: Python, packages, model files and their checksums, the port, memory, disk, open files, cores, and
how fast memory is, which decides how fast a language model writes on a CPU. Nothing is changed.

With the address of a running server, look at the way there instead: round trip, a call's offer (taken and hung up at
once), time to the first token of a streamed text, the gaps between tokens, and whether anything on the way buffers.
"""
EXAMPLES = """\
examples:
  voice-agent doctor                               this machine, with the settings `serve` would use
  voice-agent doctor --profile small --json        figures for a program
  voice-agent doctor http://127.0.0.1:8080         a server, directly
  voice-agent doctor https://voice.example.org     the same server through its proxy: compare the two
  VOICE_AGENT_API_KEYS=KEY voice-agent doctor URL  a server that wants a key

Exit code 1 when something is a problem; warnings and notes leave it 0.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser("doctor", help="what is wrong here and what to do", description=ABOUT, epilog=EXAMPLES)
    parser.add_argument("url", nargs="?", metavar="URL", help="a running server, such as http://127.0.0.1:8080")
    parser.add_argument("--json", action="store_true", help="print JSON: {ok, checks: [{name, verdict, …}]}")
    parser.add_argument("--profile", metavar="NAME", help="set of models: default or small")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from voice_agent.doctor.check import Verdict, lines

    checks = []
    for check in _server(args) if args.url else _machine(args.settings):
        checks.append(check)
        if not args.json:
            print("\n".join(lines(check)), flush=True)
    problems = [check.name for check in checks if check.verdict is Verdict.PROBLEM]
    if args.json:
        print(json.dumps({"ok": not problems, "checks": [check.as_dict() for check in checks]}, ensure_ascii=False))
    elif problems:
        print(f"\nto be mended: {', '.join(problems)}")
    return 1 if problems else 0


def _machine(settings: Settings) -> Iterator[Check]:
    from voice_agent.doctor import machine, setup

    sizes = setup.sizes(settings.models)
    steps: list[tuple[str, Callable[[], Check]]] = [
        ("Python", machine.python),
        ("whether the packages load", machine.packages),
        ("the models' checksums", lambda: setup.models(settings.models)),
        ("disk", lambda: machine.disk(sizes.folder, sizes.missing)),
        ("memory", lambda: machine.memory(sizes.all)),
        ("cores", machine.cores),
        ("memory bandwidth", lambda: machine.bandwidth(sizes.language_model)),
        ("open files", lambda: machine.open_files(settings.server.max_sessions)),
        ("the port", lambda: setup.port(settings.server)),
        ("a microphone", setup.microphone),
    ]
    for what, look in steps:
        if sys.stderr.isatty():
            print(f"\r\x1b[Klooking at {what} …", end="", file=sys.stderr, flush=True)
        check = look()
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        yield check


def _server(args: argparse.Namespace) -> list[Check]:
    import asyncio

    from voice_agent.doctor.remote import check_server

    print(f"asking {args.url} …", file=sys.stderr, flush=True)
    return asyncio.run(check_server(args.url, next(iter(args.settings.server.api_keys), "")))
