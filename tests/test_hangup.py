"""SIGHUP by hand asks for a reload; SIGHUP because the terminal was closed ends the agent."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

PROGRAM = """
import asyncio, sys
from voice_agent.reload import reload_on_hangup

async def main():
    reload, stop = asyncio.Event(), asyncio.Event()
    reload_on_hangup(reload, stop)
    print("ready", flush=True)
    waiting = [asyncio.create_task(one.wait(), name=name) for one, name in ((reload, "reload"), (stop, "stop"))]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    print(*(task.get_name() for task in done), flush=True)

asyncio.run(main())
"""


def start(terminal: int | None, *, nohup: bool = False) -> subprocess.Popen[str]:
    """In a session of its own, with that terminal as its controlling one."""

    def take_terminal() -> None:
        # Stated either way: whoever runs the tests may have been started with nohup.
        signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
        if terminal is not None:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
        preexec_fn=take_terminal,
        pass_fds=() if terminal is None else (terminal,),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def outcome(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return said.strip()


def test_without_a_terminal_it_asks_for_a_reload() -> None:
    process = start(None)
    process.send_signal(signal.SIGHUP)
    assert outcome(process) == "reload"


def test_with_its_terminal_still_there_it_asks_for_a_reload() -> None:
    master, terminal = pty.openpty()
    try:
        process = start(terminal)
        process.send_signal(signal.SIGHUP)
        assert outcome(process) == "reload"
    finally:
        os.close(terminal)
        os.close(master)


def test_a_closed_terminal_ends_the_agent() -> None:
    master, terminal = pty.openpty()
    process = start(terminal)
    os.close(terminal)
    os.close(master)
    assert outcome(process) == "stop"


def test_under_nohup_a_closed_terminal_does_not_end_it() -> None:
    master, terminal = pty.openpty()
    process = start(terminal, nohup=True)
    os.close(terminal)
    os.close(master)
    assert outcome(process) == "reload"
