"""`voice-agent config show`: values, origins, masks."""

from __future__ import annotations

import json

import pytest

from voice_agent.cli.main import main
from voice_agent.config import KEYS


def test_every_setting_is_listed_with_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show"], {"VOICE_AGENT_PORT": "81"}) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert set(KEYS) <= set(lines)
    assert lines["port"].split() == ["port", "81", "VOICE_AGENT_PORT"]
    assert lines["host"].split() == ["host", '"127.0.0.1"', "default"]
    assert "[server]" in lines


def test_json_has_whole_values_and_masked_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"VOICE_AGENT_API_KEYS": "hunter2", "VOICE_AGENT_GREETING": "Grüß Gott"}
    assert main(["config", "show", "--json"], environ) == 0
    text = capsys.readouterr().out
    listing = json.loads(text)
    assert set(listing) == set(KEYS)
    assert listing["greeting"]["value"] == "Grüß Gott"
    assert listing["api_keys"] == {
        "value": "***",
        "origin": "environment",
        "where": "VOICE_AGENT_API_KEYS",
        "group": "server",
    }
    assert listing["system_prompt"]["value"].endswith("say so briefly.")
    assert "hunter2" not in text
