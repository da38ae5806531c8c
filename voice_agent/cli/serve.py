"""`voice-agent serve`: load the models and answer calls until told to stop."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

EXAMPLES = """\
examples:
  voice-agent serve
  voice-agent serve --port 9000 --greeting "Hello, how can I help?"
  voice-agent serve --llm /models/other.gguf --trace-dir traces
  voice-agent serve --lan                       phones on this network join with a QR code
  VOICE_AGENT_API_KEYS=KEY1,KEY2 voice-agent serve --host 0.0.0.0
  voice-agent serve --config agent.toml         read again when it changes, or on SIGHUP

Ctrl-C or SIGTERM ends all calls and the server; the exit code is then 0. docs/deploy.md has more about phones,
proxies and settings that change while calls go on.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        help="answer calls (Ctrl-C stops)",
        description="Load the models, then answer calls in the browser at the address printed.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", help="port to listen on; 0 takes a free one (default 8080)")
    parser.add_argument(
        "--lan",
        action="store_true",
        default=None,
        help="HTTPS for phones on this network, which join with a one-time link",
    )
    parser.add_argument("--profile", metavar="NAME", help="set of models: default or small")
    parser.add_argument("--max-sessions", metavar="N", help="calls at the same time")
    parser.add_argument("--llm", metavar="FILE", help="a GGUF file instead of the profile's, or `scripted`")
    parser.add_argument("--stt", metavar="DIR", help="a CTranslate2 Whisper directory instead of the profile's")
    parser.add_argument("--tts", metavar="FILE", help="a Piper voice (.onnx) instead of the profile's")
    parser.add_argument("--language", metavar="CODE", help="the caller's language, or auto")
    parser.add_argument("--system-prompt", metavar="TEXT", help="what the agent is told to be")
    parser.add_argument("--greeting", metavar="TEXT", help="said when a call begins")
    parser.add_argument("--trace-dir", metavar="DIR", help="write one SESSION.jsonl trace per call here")
    parser.add_argument(
        "--ice-loopback", action="store_true", default=None, help="offer 127.0.0.1 as a WebRTC candidate"
    )
    parser.add_argument(
        "--allow-open", action="store_true", default=None, help="listen beyond this machine without keys"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from voice_agent.app import serve

    return serve(args.settings, args.source)
