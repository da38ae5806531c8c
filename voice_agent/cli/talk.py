"""`voice-agent talk`: one conversation on this machine, without a server or a browser."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from voice_agent.errors import ConfigError

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

ABOUT = """\
Talk to the agent with this machine's microphone and loudspeaker (wear headphones: there is no echo cancellation), or
let a recording be the caller: it speaks at its own pace, the agent answers, and once both are silent the call ends.
It is the conversation a caller over WebRTC would have: the same session, the same decisions, the same engines.

A recording plays in real time. With --fast, time in which no engine computes is skipped, and the result is the same
call: while recognition, the model or the voice works, the recording goes on at its own pace, and every figure is what
it would have been. Two limits: the skipped time also rested the processor, and what an engine still finishes after it
was cancelled (one step) weighs more. For figures to quote, leave --fast away or use `voice-agent bench`.
"""
EXAMPLES = """\
examples:
  voice-agent talk                                      microphone and loudspeaker; Ctrl-C hangs up
  voice-agent talk --wav question.wav --out call.wav    a recording calls; hear both sides (left it, right the agent)
  voice-agent talk --wav question.wav --fast --json     as quickly as the machine computes, figures as JSON
  voice-agent talk --wav q.wav --profile small --set min_delay=0.5
  voice-agent talk --wav q.wav --trace-dir traces       then: voice-agent replay traces/*.jsonl

The microphone needs `pip install 'voice-agent[talk]'` and PortAudio (apt install libportaudio2).
The transcript goes to stdout, progress to stderr.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "talk", help="talk here: microphone, or a recording as the caller", description=ABOUT, epilog=EXAMPLES
    )
    parser.add_argument("--wav", type=Path, metavar="IN", help="the caller: any sound file FFmpeg can read")
    parser.add_argument("--out", type=Path, metavar="WAV", help="with --wav: record the call in stereo")
    parser.add_argument("--fast", action="store_true", help="with --wav: skip the time in which nothing computes")
    parser.add_argument("--microphone", metavar="NAME", help="an input device by name or number")
    parser.add_argument("--loudspeaker", metavar="NAME", help="an output device by name or number")
    parser.add_argument("--json", action="store_true", help="print JSON at the end instead of the transcript")
    parser.add_argument("--profile", metavar="NAME", help="set of models: default or small")
    parser.add_argument("--llm", metavar="FILE", help="a GGUF file instead of the profile's, or `scripted`")
    parser.add_argument("--language", metavar="CODE", help="the caller's language, or auto")
    parser.add_argument("--greeting", metavar="TEXT", help="said when the call begins")
    parser.add_argument("--trace-dir", metavar="DIR", help="write the call's trace here")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    _check(args)
    from voice_agent.talk.run import FromFile, FromMicrophone, talk
    from voice_agent.talk.show import Transcript, closing_line

    if args.wav:
        plan: FromFile | FromMicrophone = FromFile(args.wav, args.out, args.fast)
    else:
        plan = FromMicrophone(_device(args.microphone), _device(args.loudspeaker))
    transcript = Transcript(_nothing if args.json else _print, _progress)
    talked = talk(args.settings, plan, transcript, _progress)
    if args.json:
        record = dataclasses.asdict(talked)
        files = {"wav": args.wav and str(args.wav), "out": args.out and str(args.out), "fast": args.fast}
        print(json.dumps({**record, **files}, indent=2, ensure_ascii=False))
    else:
        _progress(closing_line(talked))
    return 1 if talked.failed else 0


def _check(args: argparse.Namespace) -> None:
    """Raises ConfigError where options do not go together."""
    for name in ("out", "fast"):
        if getattr(args, name) and not args.wav:
            raise ConfigError(f"--{name} goes with --wav IN, a recording that is the caller")
    for name in ("microphone", "loudspeaker"):
        if getattr(args, name) is not None and args.wav:
            raise ConfigError(f"--{name} does not go with --wav: the recording is the caller")
    if args.out and args.wav and args.out.absolute() == args.wav.absolute():
        raise ConfigError(f"--out {args.out} would overwrite the caller's recording")


def _device(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _print(line: str) -> None:
    print(line, flush=True)


def _nothing(line: str) -> None:
    pass


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
