"""`voice-agent config`: values, origins, masks; a file to begin with; mistakes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from voice_agent.cli.config_template import toml_value
from voice_agent.cli.main import main
from voice_agent.config import KEYS, load_settings
from voice_agent.settings import Settings


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


def test_a_profile_can_be_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--json", "--profile", "small"], {}) == 0
    shown = json.loads(capsys.readouterr().out)["profile"]
    assert (shown["value"], shown["where"]) == ("small", "--profile")
    assert main(["models", "list", "--json", "--profile", "small"], {}) == 0
    used = {model["name"] for model in json.loads(capsys.readouterr().out)["models"] if model["configured"]}
    assert {"whisper-tiny.en", "smollm2-135m"} <= used
    assert main(["config", "show", "--profile", "tiny"], {}) == 2


def test_init_writes_every_key_with_its_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent.toml"
    assert main(["config", "init", str(file)], {"VOICE_AGENT_NONSENSE": "1"}) == 0
    assert str(file) in capsys.readouterr().out
    document = tomllib.loads(file.read_text())
    assert {name for group in document.values() for name in group} == set(KEYS)
    settings, provenance = load_settings({}, {}, file)
    assert settings == Settings()
    assert {origin.kind for origin in provenance.values()} == {"file"}
    for name, origin in provenance.items():
        line = file.read_text().splitlines()[int(origin.name.rsplit(" ", 1)[1]) - 1]
        assert line.startswith(f"{name} = ")


def test_init_explains_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "init", "-"], {}) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in KEYS:
        (at,) = [number for number, line in enumerate(lines) if line.startswith(f"{name} = ")]
        assert lines[at - 1].startswith("# "), f"{name} has no word of explanation"
    text = " ".join(lines)
    assert "(a number from 0.25 to 4)" in text
    assert "(one of default, small)" in text
    assert max(len(line) for line in lines if line.startswith("#")) <= 120


def test_init_leaves_a_file_alone_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("port = 1\n")
    assert main(["config", "init", str(file)], {}) == 2
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "port = 1\n"
    assert main(["config", "init", "--json", "--force", str(file)], {}) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(file), "keys": len(KEYS)}
    assert load_settings({}, {}, file)[0] == Settings()


def test_init_where_nothing_can_be_written_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "init", str(tmp_path / "none" / "a.toml")], {}) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["", 'a "quoted" \\ text', "two\nlines\ttab", "é 😀 \x7f \u2028", "#no = comment"])
def test_texts_survive_toml(value: str) -> None:
    assert tomllib.loads(f"a = {toml_value(value)}")["a"] == value
    assert tomllib.loads(f"a = {toml_value((value, value))}")["a"] == [value, value]


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("profile=smal", "one of default, small; did you mean small?"),
        ("profile=SMALL", "did you mean small?"),
        ("speed=9", "a number from 0.25 to 4"),
        ("prfile=small", "did you mean profile?"),
        ("PORT=1", "did you mean port?"),
        ("allow_open=perhaps", "1, true, yes, on, 0, false, no or off"),
    ],
)
def test_a_mistake_names_the_key_what_is_allowed_and_the_nearest(
    pair: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "show", "--set", pair], {}) == 2
    error = capsys.readouterr().err
    assert pair.partition("=")[0] in error
    assert words in error
