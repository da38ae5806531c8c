"""Runs a command as the terminal's own foreground job: `foreground.py COMMAND ARGUMENT…`.

Ctrl-C in a terminal goes to every process of the foreground group. make would take it too and report failure
(`*** [run] Interrupt`, status 130) although the agent ended in order. So the command gets a process group of its own
and the terminal, as a shell does for its jobs, and its exit code is ours. Without a terminal there is nothing to hand
over and the command simply takes our place.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def terminal() -> int | None:
    """The controlling terminal, if we are in its foreground."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    return descriptor if os.tcgetpgrp(descriptor) == os.getpgrp() else None


def run(command: list[str], tty: int) -> int:
    """Run the command with the terminal, and take the terminal back when it ends or is stopped with Ctrl-Z."""
    child = subprocess.Popen(command, process_group=0)
    # From here on we are in the background, where taking the terminal back would stop us with this signal.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: os.kill(child.pid, received))
    while True:
        os.tcsetpgrp(tty, child.pid)
        os.killpg(child.pid, signal.SIGCONT)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        os.tcsetpgrp(tty, os.getpgrp())
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        # Stop make and ourselves as well, so that the shell gets its prompt; `fg` continues us all.
        os.killpg(0, signal.SIGTSTP)


def main() -> int:
    command = sys.argv[1:]
    if not command:
        print("usage: foreground.py COMMAND ARGUMENT…", file=sys.stderr)
        return 2
    tty = terminal()
    if tty is None:
        os.execvp(command[0], command)
    return run(command, tty)


if __name__ == "__main__":
    sys.exit(main())
