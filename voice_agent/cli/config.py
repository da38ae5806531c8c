"""`voice-agent config show`: what every setting is and where it was written."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING

from voice_agent.config import KEYS, masked

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "config",
        help="show the settings and where each one came from",
        description="Show the settings as `serve` would use them. Keys and passwords are masked.",
        epilog="examples:\n  voice-agent config show\n  voice-agent config show --json --config agent.toml",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="list every setting, its value and its origin")
    show.add_argument("--json", action="store_true", help="print JSON: {key: {value, origin, where, group}}")
    show.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    values = masked(args.settings)
    if args.json:
        listing = {
            name: {
                "value": value,
                "origin": args.provenance[name].kind,
                "where": args.provenance[name].name,
                "group": KEYS[name].group,
            }
            for name, value in values.items()
        }
        print(json.dumps(listing, indent=2, ensure_ascii=False))
        return 0
    width = max(len(name) for name in values)
    group = ""
    for name, value in values.items():
        if KEYS[name].group != group:
            print(f"{'' if not group else chr(10)}[{KEYS[name].group}]")
            group = KEYS[name].group
        shown = textwrap.shorten(json.dumps(value, ensure_ascii=False), 60, placeholder=' …"')
        print(f"{name:{width}}  {shown:40}  {args.provenance[name].name}")
    return 0
