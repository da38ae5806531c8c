"""`voice-agent report`: where the time of each turn of recorded calls went."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

EXAMPLES = """\
examples:
  voice-agent serve --trace-dir traces        record calls
  voice-agent report traces/*.jsonl           a table per call and the sum over all
  voice-agent report CALL.jsonl --json        the same figures for a program

Stages are consecutive and sum to the voice-to-voice latency (the caller's last sound to the reply's first sample
handed to the network). `hold` is how long a finished reply waited for the turn to be over.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "report",
        help="where the time of each turn went",
        description="Read call traces and print the latency of every turn, stage by stage.",
        epilog=EXAMPLES,
    )
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="a SESSION.jsonl file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=run, needs_settings=False)


def run(args: argparse.Namespace) -> int:
    from voice_agent.report import read_report, summary, summary_table, table

    calls = [read_report(path) for path in args.traces]
    figures = summary(calls)
    if args.json:
        print(
            json.dumps({"calls": [{"session_id": c.session_id, "turns": c.turns} for c in calls], "summary": figures})
        )
        return 0
    for call in calls:
        print(table(call), end="\n\n")
    print(summary_table(figures))
    return 0
