"""An agent of our own for the time of a measurement: `voice-agent serve` as a child process, metered from /proc."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from voice_agent.errors import VoiceAgentError

COMMAND = (sys.executable, "-m", "voice_agent", "serve")
READY_TIMEOUT = 300.0
"""Seconds for loading and warming the models, on a slow disk as well."""
STOP_TIMEOUT = 20.0
_ADDRESS = re.compile(r"https?://\S+")
_KEPT_LINES = 40
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    cpu_seconds: float
    peak_rss: int
    """Bytes of memory at its highest, since the process began."""


def usage(pid: int, proc: Path = Path("/proc")) -> Usage | None:
    """None where there is no /proc or no such process."""
    try:
        stat = (proc / str(pid) / "stat").read_text()
        status = (proc / str(pid) / "status").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before may hold anything, spaces too
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    ticks = int(fields[11]) + int(fields[12])  # utime and stime, proc(5) fields 14 and 15
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(peak[1]) * 1024 if peak else 0)


class AgentProcess:
    """Made by `start_agent`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.url = ""
        self.exit_code: int | None = None
        self._process = process
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._announced = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        return self._process.pid

    def usage(self) -> Usage | None:
        return usage(self.pid)

    async def wait_ready(self, within: float = READY_TIMEOUT) -> None:
        """Until /readyz says yes. Raises VoiceAgentError, with what the process said, if it ends or takes too long."""
        try:
            async with asyncio.timeout(within):
                await self._announced.wait()
                async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
                    while self._process.returncode is None:
                        with contextlib.suppress(httpx.HTTPError):
                            if (await client.get(f"{self.url}/readyz")).status_code == 200:
                                return
                        await asyncio.sleep(0.2)
        except TimeoutError:
            raise VoiceAgentError(f"the agent was not ready after {within:g} seconds. {self.tail()}") from None
        await self._process.wait()
        raise VoiceAgentError(f"the agent ended while starting ({self._process.returncode}). {self.tail()}")

    async def stop(self, within: float = STOP_TIMEOUT) -> None:
        """End it with SIGTERM. Raises VoiceAgentError if its exit code is not 0 or it had to be killed."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(within):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            raise VoiceAgentError(f"the agent did not stop {within:g} seconds after SIGTERM. {self.tail()}") from None
        finally:
            self.exit_code = self._process.returncode
            await self._reading
        if self.exit_code != 0:
            raise VoiceAgentError(f"the agent ended with exit code {self.exit_code}, not 0. {self.tail()}")

    def kill(self) -> None:
        """The last resort; safe at any time."""
        if self._process.returncode is None:
            self._process.kill()

    def tail(self) -> str:
        """Its last lines of output."""
        return "Its last words: " + " | ".join(self._lines) if self._lines else "It said nothing."

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            line = raw.decode(errors="replace").strip()
            if line:
                self._lines.append(line)
            if not self.url and (found := _ADDRESS.search(line)):
                self.url = found[0].rstrip("/")
                self._announced.set()
        self._announced.set()


@contextlib.asynccontextmanager
async def start_agent(
    arguments: Sequence[str],
    command: Sequence[str] = COMMAND,
    on_progress: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[AgentProcess]:
    """A ready agent on a free port of 127.0.0.1 with the caller's environment and `arguments`; stopped in the end.

    It has a session of its own: Ctrl-C in the terminal reaches us alone, and we stop it. Raises VoiceAgentError.
    """
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        "--host=127.0.0.1",
        "--port=0",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "VOICE_AGENT_ICE_LOOPBACK": "1"},
        start_new_session=True,
        limit=_LONGEST_LINE,
    )
    agent = AgentProcess(process)
    try:
        on_progress("starting an agent …")
        await agent.wait_ready()
        on_progress(f"agent ready at {agent.url} after {time.monotonic() - began:.1f} s")
        yield agent
    except BaseException:
        with contextlib.suppress(VoiceAgentError):  # the first error is the one to tell
            await agent.stop()
        raise
    else:
        await agent.stop()
    finally:
        agent.kill()
