"""`voice-agent replay`: would today's core decide a recorded call the same way?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

ABOUT = """\
Feed the events of a recorded call to a fresh core, with the settings the call had, and compare its commands with the
recorded ones. Nothing is heard, spoken or waited for: a call takes milliseconds.

On an unchanged core there are no differences. After a change they show which decisions it moves, on real calls.
"""
EXAMPLES = """\
examples:
  voice-agent serve --trace-dir traces          record calls
  voice-agent replay traces/*.jsonl             before a change: all as recorded
  voice-agent replay --most 3 traces/*.jsonl    after it: the first differences of each call
  voice-agent replay --json CALL.jsonl          every difference, for a program

Exit code 1 when a call differs.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "replay", help="compare the core's decisions with a recorded call", description=ABOUT, epilog=EXAMPLES
    )
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="a SESSION.jsonl file")
    parser.add_argument("--most", type=_count, default=10, metavar="N", help="differences shown per call (default 10)")
    parser.add_argument("--json", action="store_true", help="print JSON: {same, calls: [{differences, …}]}")
    parser.set_defaults(run=run, needs_settings=False)


def run(args: argparse.Namespace) -> int:
    from voice_agent.replay import as_json, as_text, replay

    calls = []
    same = True
    for path in args.traces:
        result = replay(path)
        same = same and not result.differences
        if args.json:
            calls.append(as_json(result))
        else:
            print(as_text(result, args.most), flush=True)
    if args.json:
        print(json.dumps({"same": same, "calls": calls}, indent=2))
    return 0 if same else 1


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError("a number from 1 to 1000000")
    return value
