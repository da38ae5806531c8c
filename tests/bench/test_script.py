from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from voice_agent.bench.script import DEFAULT, Script, Turn, When, load_script, parse_script, parse_when
from voice_agent.errors import ConfigError


def parsed(text: str) -> Script:
    return parse_script(tomllib.loads(text), Path("folder/my.toml"))


def test_the_default_script_has_pauses_and_interruptions() -> None:
    script = load_script(DEFAULT)
    assert len(script.turns) == 16
    tags = Counter(turn.tag for turn in script.turns)
    assert tags["paused"] == tags["barge"] == 4
    assert all((turn.pause > 0) == (turn.tag == "paused") for turn in script.turns)
    assert all((turn.when.after == "agent_started") == (turn.tag == "barge") for turn in script.turns)


def test_every_key_arrives() -> None:
    script = parsed("""
        reply_timeout = 3
        noise_db = -60
        [[turn]]
        say = " Hello. "
        [[turn]]
        id = "x"
        wav = "a.wav"
        when = "agent started + 0.5"
        tag = "barge"
        pause = 0.5
        reply = false
    """)
    assert (script.reply_timeout, script.noise_db) == (3.0, -60.0)
    assert script.turns[0] == Turn("01", When("line", 1.0), say="Hello.")
    assert script.turns[1] == Turn(
        "x", When("agent_started", 0.5), wav=Path("folder/a.wav"), tag="barge", pause=0.5, reply=False
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, When("line", 2.0)),
        (0.5, When("line", 0.5)),
        ("agent done", When("agent_done")),
        ("agent done+1", When("agent_done", 1.0)),
        ("agent started + 1.25", When("agent_started", 1.25)),
    ],
)
def test_moments(value: object, expected: When) -> None:
    assert parse_when(value, "when") == expected


@pytest.mark.parametrize("value", ["agent", "agent done - 1", "agent done + x", "", -1, True, None, "soon", 1e9])
def test_moments_that_are_none(value: object) -> None:
    with pytest.raises(ConfigError, match="when"):
        parse_when(value, "when")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"at least one \[\[turn\]\]"),
        ("turn = 3", r"at least one \[\[turn\]\]"),
        ("turn = [3]", "turn 1 is not a table"),
        ("tune = 1\n[[turn]]\nsay='a'", "unknown key 'tune'"),
        ("[[turn]]\nsay='a'\nwhem=1", "turn 1: unknown key 'whem'"),
        ("[[turn]]", "turn 1: give either `say`"),
        ("[[turn]]\nsay=' '", "give either `say`"),
        ("[[turn]]\nsay='a'\nwav='b'", "give either `say`"),
        ("[[turn]]\nsay=3", "give either `say`"),
        ("[[turn]]\nsay='a'\ntag='loud'", "one of plain, paused, short, barge"),
        ("[[turn]]\nsay='a'\nspeed=9", "speed is 9; it must be a number from 0.25 to 4"),
        ("[[turn]]\nwav='a'\nspeed=1", "speed is for text"),
        ("[[turn]]\nsay='a'\npause='long'", "pause is 'long'"),
        ("[[turn]]\nsay='a'\nreply=1", "true or false"),
        ("[[turn]]\nsay='a'\nwhen='agent done'", "first turn"),
        ("done=nan\n[[turn]]\nsay='a'", "done is nan"),
        ("[[turn]]\nid='a'\nsay='a'\n[[turn]]\nid='a'\nsay='b'", "two turns have the id 'a'"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parsed(text)
    assert "my.toml" in str(caught.value)


def test_files_that_are_no_scripts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read script .*none\.toml: No such file"):
        load_script(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"[[turn]\n")
    with pytest.raises(ConfigError, match="is not TOML"):
        load_script(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        load_script(broken)
