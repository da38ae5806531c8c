"""scripts/foreground.py: Ctrl-C reaches the command and not make; the exit code comes through."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).resolve().parents[2] / "scripts" / "foreground.py")

AGENT = """\
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("up", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_comes_through_without_a_terminal(code: int) -> None:
    command = [sys.executable, SCRIPT, sys.executable, "-c", f"raise SystemExit({code})"]
    assert subprocess.run(command, start_new_session=True, check=False).returncode == code


def test_without_a_terminal_the_command_takes_our_place() -> None:
    command = [sys.executable, SCRIPT, sys.executable, "-c", "import os; print(os.getpid())"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.communicate()[0] == f"{process.pid}\n"


def test_a_command_is_needed() -> None:
    assert subprocess.run([sys.executable, SCRIPT], check=False, capture_output=True).returncode == 2


def _make_on_a_terminal(folder: Path, agent: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start `make run` as the foreground of a new terminal; the process, and the terminal's other end."""
    (folder / "agent.py").write_text(agent)
    (folder / "Makefile").write_text(f"run:\n\t@exec {sys.executable} {SCRIPT} {sys.executable} agent.py\n")
    ours, theirs = pty.openpty()
    # These tests may themselves run under make, whose variables would make this one talk of directories and levels.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["setsid", "--ctty", "make", "run"]
    make = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    return make, ours


def _read_until(terminal: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += os.read(terminal, 1000)
    return seen


def test_ctrl_c_under_make_is_success(tmp_path: Path) -> None:
    make, terminal = _make_on_a_terminal(tmp_path, AGENT)
    _read_until(terminal, b"up")
    os.write(terminal, b"\x03")
    assert make.wait() == 0
    os.close(terminal)


def test_sigterm_to_make_reaches_the_command(tmp_path: Path) -> None:
    agent = AGENT.replace('print("up"', 'print("up", __import__("os").getpid(), "."')
    make, terminal = _make_on_a_terminal(tmp_path, agent)
    child = int(_read_until(terminal, b".").split()[1])
    make.terminate()
    make.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    os.close(terminal)
