from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from voice_agent.bench.agent_process import AgentProcess, Usage, start_agent, usage
from voice_agent.errors import VoiceAgentError

SERVE = """
import http.server, os, signal, sys
class Ready(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Ready.asked += 1
        self.send_response(200 if Ready.asked > 1 else 503)
        self.end_headers()
    def log_message(self, *words): pass
signal.signal(signal.SIGTERM, {on_term})
server = http.server.HTTPServer(("127.0.0.1", 0), Ready)
print("arguments", sys.argv[1:], "loopback", os.environ["VOICE_AGENT_ICE_LOOPBACK"], flush=True)
print(f"voice agent on http://127.0.0.1:{{server.server_port}}/  (loading)", flush=True)
server.serve_forever()
"""


def serving(on_term: str) -> list[str]:
    return [sys.executable, "-c", SERVE.format(on_term=on_term)]


def test_an_agent_is_started_waited_for_and_stopped() -> None:
    said: list[str] = []

    async def measured() -> tuple[AgentProcess, Usage | None]:
        command = serving("lambda *_: os._exit(0)")
        async with start_agent(["--set=speed=2"], command, said.append) as agent:
            assert agent.exit_code is None
            used = agent.usage()
        return agent, used

    agent, used = asyncio.run(measured())
    assert agent.exit_code == 0
    assert agent.url.startswith("http://127.0.0.1:")
    assert not agent.url.endswith("/")
    assert "['--set=speed=2', '--host=127.0.0.1', '--port=0'] loopback 1" in agent.tail()
    assert used is not None
    assert used.peak_rss > 1_000_000
    assert agent.usage() is None
    assert said[0] == "starting an agent …"
    assert agent.url in said[1]


def test_an_exit_code_that_is_not_0_is_an_error() -> None:
    async def measured() -> None:
        async with start_agent([], serving("lambda *_: os._exit(3)")):
            pass

    with pytest.raises(VoiceAgentError, match=r"exit code 3, not 0\. Its last words: arguments"):
        asyncio.run(measured())


def test_an_agent_that_does_not_start_says_why() -> None:
    async def measured() -> None:
        async with start_agent([], [sys.executable, "-c", "raise SystemExit('no models here')"]):
            pytest.fail("not ready")

    with pytest.raises(VoiceAgentError, match=r"ended while starting \(1\)\. Its last words: no models here"):
        asyncio.run(measured())


def test_an_agent_that_does_not_stop_is_killed() -> None:
    async def measured() -> None:
        async with start_agent([], serving("signal.SIG_IGN")) as agent:
            with pytest.raises(VoiceAgentError, match=r"did not stop 0\.05 seconds after SIGTERM"):
                await agent.stop(within=0.05)
            assert agent.exit_code == -9

    with pytest.raises(VoiceAgentError, match="exit code -9"):
        asyncio.run(measured())


def test_an_agent_that_never_gets_ready_is_stopped() -> None:
    async def measured() -> None:
        async with start_agent([], serving("lambda *_: os._exit(0)")) as agent:
            agent.url = "http://127.0.0.1:9"  # nobody there
            await agent.wait_ready(within=0.05)

    with pytest.raises(VoiceAgentError, match=r"not ready after 0\.05 seconds"):
        asyncio.run(measured())


def test_a_failure_of_the_measurement_comes_first() -> None:
    async def measured() -> None:
        async with start_agent([], serving("lambda *_: os._exit(3)")):
            raise RuntimeError("the measurement")

    with pytest.raises(RuntimeError, match="the measurement"):
        asyncio.run(measured())


def test_usage_is_read_from_proc(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    numbers = ["S", *map(str, range(4, 14)), "250", "50", *map(str, range(16, 53))]
    (folder / "stat").write_text("7 (a (strange) name) " + " ".join(numbers))
    (folder / "status").write_text("Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n")
    assert usage(7, tmp_path) == Usage(3.0, 2048 * 1024)
    assert usage(8, tmp_path) is None
