"""`voice-agent report`: where the time of each turn of recorded calls went."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

ABOUT = """\
Read call traces and print the latency of every turn, stage by stage, and percentiles over all of them.

Stages are consecutive and sum to the voice-to-voice latency (the caller's last sound to the reply's first sample
handed to the network). `hold` is how long a finished reply waited for the turn to be over. Percentiles are nearest
rank: every figure printed was measured in some turn.
"""
EXAMPLES = """\
examples:
  voice-agent serve --trace-dir traces                record calls
  voice-agent report traces/*.jsonl                   a table per call and percentiles over all
  voice-agent report traces/*.jsonl --html calls.html  one page with waterfalls, to look at or to send
  voice-agent report CALL.jsonl --json                the same figures for a program

The page holds what was said; it loads nothing and runs no script.
"""
MANY = 50
"""Traces from which on reading them is worth a word."""


def register(commands: Commands) -> None:
    parser = commands.add_parser("report", help="where the time of each turn went", description=ABOUT, epilog=EXAMPLES)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="a SESSION.jsonl file")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained page here")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=run, needs_settings=False)


def run(args: argparse.Namespace) -> int:
    from voice_agent.report import page, read_report, summary, summary_table, table

    calls = []
    for number, path in enumerate(args.traces):
        if number and number % MANY == 0:
            print(f"{number} of {len(args.traces)} traces read", file=sys.stderr, flush=True)
        calls.append(read_report(path))
    figures = summary(calls)
    if args.html:
        _write(args.html, page(calls))
    if args.json:
        listing = [{"session_id": c.session_id, "end_reason": c.end_reason, "turns": c.turns} for c in calls]
        print(json.dumps({"calls": listing, "summary": figures}))
        return 0
    for call in calls:
        print(table(call), end="\n\n")
    print(summary_table(figures))
    return 0


def _write(path: Path, text: str) -> None:
    from voice_agent.errors import VoiceAgentError

    try:
        # A trace may hold half a surrogate pair, which is no text in a file.
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise VoiceAgentError(f"cannot write {path}: {error.strerror or error}") from error
    print(f"written: {path}", file=sys.stderr)
