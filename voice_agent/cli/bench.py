"""`voice-agent bench`: a simulated caller measures an agent from outside."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.bench.run import CallResult
    from voice_agent.bench.script import Script
    from voice_agent.bench.show import AgentUsage
    from voice_agent.cli.main import Commands
    from voice_agent.engines.ports import Pcm16

ABOUT = """\
Call an agent over WebRTC, speak a script of lines to it, and measure what a caller would notice: how long the agent
takes to answer, whether it cuts in or stays silent, how fast it stops when interrupted. Beside each figure stands
the agent's own, with its stages, and the difference of the two.

Without --url an agent with the current settings is started for the measurement and stopped after it.
"""
EXAMPLES = """\
examples:
  voice-agent bench                              start an agent, one call with the built-in script
  voice-agent bench --runs 3 --out bench.json    three calls, figures as JSON beside the tables
  voice-agent bench --profile small --set min_delay=0.4
  voice-agent bench --url http://127.0.0.1:8080 --record call.wav
  voice-agent bench --script my_lines.toml       (voice_agent/bench/default.toml shows every key)

Tables go to stdout, progress to stderr. Speech ends are exact: lines are trimmed to what is louder than -45 dBFS.
The caller needs CPU too: on a small machine run nothing else.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "bench", help="measure an agent with a simulated caller", description=ABOUT, epilog=EXAMPLES
    )
    parser.add_argument("--url", help="an agent that runs already, such as http://127.0.0.1:8080")
    parser.add_argument("--runs", type=_count, default=1, metavar="N", help="calls in a row (default 1)")
    parser.add_argument("--script", type=Path, metavar="FILE", help="a script of your own, TOML")
    parser.add_argument("--record", type=Path, metavar="WAV", help="left the caller, right the agent; -2, -3 … follow")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON here, whatever is printed")
    parser.add_argument("--profile", metavar="NAME", help="set of models: default or small")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import asyncio
    import json

    from voice_agent.bench.script import DEFAULT, load_script
    from voice_agent.bench.show import as_json, call_table, summary_table

    script = load_script(args.script or DEFAULT)
    try:
        url, calls, agent = asyncio.run(_bench(args, script))
    except asyncio.CancelledError:  # SIGTERM
        return 143
    report = json.dumps(as_json(url, calls, agent), indent=2, ensure_ascii=False)
    if args.out:
        _write(args.out, report + "\n")
    if args.json:
        print(report)
    else:
        for number, call in enumerate(calls, 1):
            print(call_table(call, number), end="\n\n")
        print(summary_table(calls, agent))
    return 0


async def _bench(args: argparse.Namespace, script: Script) -> tuple[str, list[CallResult], AgentUsage | None]:
    import asyncio
    import dataclasses
    import signal
    import time

    from voice_agent.bench.agent_process import start_agent
    from voice_agent.bench.show import AgentUsage

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    sounds = await _speak(args, script)
    if args.url:
        return args.url, await _calls(args, args.url, script, sounds), None
    started = time.monotonic()
    async with start_agent(serve_arguments(args), on_progress=_progress) as process:
        began, before = time.monotonic(), process.usage()
        calls = await _calls(args, process.url, script, sounds)
        wall, after = time.monotonic() - began, process.usage()
    if before is None or after is None:
        return process.url, calls, None
    used = AgentUsage(after.cpu_seconds - before.cpu_seconds, wall, after.peak_rss, began - started, None)
    return process.url, calls, dataclasses.replace(used, exit_code=process.exit_code)


async def _speak(args: argparse.Namespace, script: Script) -> list[Pcm16]:
    """All lines before the first call: speaking them takes CPU that the agent must not miss."""
    from voice_agent.bench.lines import speak

    if all(turn.wav for turn in script.turns):
        return [await speak(turn, None) for turn in script.turns]
    from voice_agent.engine_makers import make_voice

    _progress(f"speaking {len(script.turns)} lines …")
    voice = make_voice(args.settings)
    try:
        return [await speak(turn, voice) for turn in script.turns]
    finally:
        await voice.close()


async def _calls(args: argparse.Namespace, url: str, script: Script, sounds: list[Pcm16]) -> list[CallResult]:
    import dataclasses

    from voice_agent.bench.run import run_call

    settings = args.settings
    calls: list[CallResult] = []
    for number in range(1, args.runs + 1):
        _progress(f"call {number} of {args.runs}")
        call = await run_call(
            url,
            script,
            sounds,
            webrtc=dataclasses.replace(settings.webrtc, ice_loopback=True),
            api_key=next(iter(settings.server.api_keys), ""),
            record=args.record is not None,
            progress=_progress,
        )
        calls.append(call)
        if args.record is not None:
            _write_wav(args.record, number, call)
    return calls


def serve_arguments(args: argparse.Namespace) -> list[str]:
    """What was given on our command line for `voice-agent serve`; the environment passes by itself."""
    given: list[str] = []
    if args.config is not None:
        given.append(f"--config={args.config}")
    for pair in getattr(args, "pairs", []):
        given.append(f"--set={pair}")
    if args.profile is not None:
        given.append(f"--profile={args.profile}")
    return given


def _write_wav(path: Path, number: int, call: CallResult) -> None:
    import wave

    from voice_agent.bench.ear import RATE
    from voice_agent.errors import VoiceAgentError

    assert call.recording is not None
    target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
    try:
        with wave.open(str(target), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(call.recording.T.astype("<i2").tobytes())
    except OSError as error:
        raise VoiceAgentError(f"cannot write {target}: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    from voice_agent.errors import VoiceAgentError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise VoiceAgentError(f"cannot write {path}: {error.strerror}") from error


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError("a number from 1 to 1000")
    return value
