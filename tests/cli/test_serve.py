"""`voice-agent serve` hands its settings to the composition root and returns what that returns."""

from __future__ import annotations

import sys
import types

import pytest

from voice_agent.cli.main import main
from voice_agent.config import Source
from voice_agent.settings import Settings


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    calls: list[Settings] = []
    app = types.ModuleType("voice_agent.app")

    def serve(settings: Settings, source: Source) -> int:
        assert source.load() == settings
        calls.append(settings)
        return 5

    app.serve = serve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "voice_agent.app", app)
    return calls


def test_flags_reach_the_settings(served: list[Settings]) -> None:
    words = "--port 0 --profile small --max-sessions 2 --llm scripted --greeting Hi --ice-loopback --trace-dir t"
    assert main(["serve", *words.split()], {}) == 5
    (settings,) = served
    assert (settings.server.port, settings.server.max_sessions, settings.server.trace_dir) == (0, 2, "t")
    assert (settings.models.profile, settings.models.llm) == ("small", "scripted")
    assert settings.agent.greeting == "Hi"
    assert settings.webrtc.ice_loopback


def test_flags_not_given_leave_the_environment_alone(served: list[Settings]) -> None:
    assert main(["serve"], {"VOICE_AGENT_ICE_LOOPBACK": "1", "VOICE_AGENT_PORT": "7"}) == 5
    assert served[0].webrtc.ice_loopback
    assert served[0].server.port == 7


def test_listening_beyond_loopback_is_refused_before_anything_loads(
    served: list[Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--host", "0.0.0.0"], {}) == 2
    assert served == []
    assert "--allow-open" in capsys.readouterr().err
    assert main(["serve", "--host", "0.0.0.0", "--allow-open"], {}) == 5


def test_lan_needs_neither_keys_nor_a_host(served: list[Settings]) -> None:
    assert main(["serve", "--lan"], {}) == 5
    assert served[0].server.lan
    assert main(["serve", "--lan", "--host", "192.168.1.5"], {}) == 5
    assert main(["serve"], {"VOICE_AGENT_LAN": "1"}) == 5
    assert served[2].server.lan
