"""`voice-agent config`: what every setting is and where it was written; a settings file to begin with."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from voice_agent.config import KEYS, masked
from voice_agent.errors import ConfigError

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

SHOW = """\
Show every setting as `serve` would use it, and where its value was written: a flag, a variable of the environment, a
line of the settings file, or the default. Keys and passwords are masked.
"""
INIT = """\
Write a settings file with every key, its default, what it means and what it may be. A file that is there already is
left alone unless --force is given.
"""
DEFAULT_FILE = Path("voice-agent.toml")


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "config",
        help="show the settings and where each one came from; write a settings file",
        description="Show the settings, or write a settings file to begin with.",
        epilog="examples:\n  voice-agent config show\n  voice-agent config show --json --config agent.toml\n"
        "  voice-agent config init agent.toml",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser(
        "show",
        help="list every setting, its value and its origin",
        description=SHOW,
        epilog="examples:\n  voice-agent config show\n  VOICE_AGENT_PORT=9000 voice-agent config show --set speed=1.2\n"
        "  voice-agent config show --json --config agent.toml",
    )
    show.add_argument("--json", action="store_true", help="print JSON: {key: {value, origin, where, group}}")
    show.add_argument("--profile", metavar="P", help="as with serve --profile: default or small")
    show.set_defaults(run=run)
    init = actions.add_parser(
        "init",
        help="write a settings file with every key and its default",
        description=INIT,
        epilog=f"examples:\n  voice-agent config init               write {DEFAULT_FILE}\n"
        "  voice-agent config init agent.toml    then: voice-agent serve --config agent.toml\n"
        "  voice-agent config init -             print it",
    )
    init.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, metavar="FILE", help="- is stdout")
    init.add_argument("--force", action="store_true", help="overwrite the file")
    init.add_argument("--json", action="store_true", help="print JSON: {file, keys}")
    init.set_defaults(run=run_init, needs_settings=False)


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


def run_init(args: argparse.Namespace) -> int:
    from voice_agent.cli.config_template import template

    text = template()
    if str(args.file) == "-":
        sys.stdout.write(text)
        return 0
    try:
        # "x" looks and creates in one step: nobody's file is lost in between.
        with args.file.open("w" if args.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{args.file} is there already; name another file, or overwrite it with --force") from None
    except OSError as error:
        raise ConfigError(f"cannot write {args.file}: {error.strerror or error}") from error
    if args.json:
        print(json.dumps({"file": str(args.file), "keys": len(KEYS)}))
    else:
        print(f"written: {args.file}. Use it with --config {args.file}, or VOICE_AGENT_CONFIG={args.file}")
    return 0
