"""Layers, coercion and refusals of `config.py`: every setting, every origin."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from voice_agent.config import KEYS, RANGES, Given, Source, is_loopback, load_settings, masked
from voice_agent.errors import ConfigError
from voice_agent.settings import Settings


def _file(folder: Path, text: str) -> Path:
    file = folder / "agent.toml"
    file.write_text(text, encoding="utf-8")
    return file


def _refused(cli=(), environ=(), file=None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(dict(cli), dict(environ), file)
    return str(caught.value)


# --- layers ------------------------------------------------------------------------------------------------------


def test_nothing_written_gives_the_defaults() -> None:
    settings, provenance = load_settings({}, {}, None)
    assert settings == Settings()
    assert {origin.kind for origin in provenance.values()} == {"default"}
    assert set(provenance) == set(KEYS)


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = _file(tmp_path, "port = 1\nmax_sessions = 1\nspeed = 1.5\n")
    environ = {"VOICE_AGENT_PORT": "2", "VOICE_AGENT_MAX_SESSIONS": "2"}
    settings, provenance = load_settings({"port": "3", "host": None}, environ, file)
    assert (settings.server.port, settings.server.max_sessions, settings.agent.speed) == (3, 2, 1.5)
    assert settings.server.host == "127.0.0.1"
    assert provenance["port"].name == "--port"
    assert provenance["max_sessions"].name == "VOICE_AGENT_MAX_SESSIONS"
    assert provenance["speed"].name == f"{file} line 3"
    assert provenance["host"].kind == "default"


def test_the_file_may_be_named_by_the_environment_and_a_flag_wins(tmp_path: Path) -> None:
    named = _file(tmp_path, "port = 1")
    other = tmp_path / "other.toml"
    other.write_text("port = 2")
    environ = {"VOICE_AGENT_CONFIG": str(named)}
    assert load_settings({}, environ, None)[0].server.port == 1
    assert load_settings({}, environ, other)[0].server.port == 2


def test_an_empty_variable_is_not_set() -> None:
    environ = {"VOICE_AGENT_PORT": "", "VOICE_AGENT_CONFIG": "", "VOICE_AGENT_NONSENSE": ""}
    assert load_settings({}, environ, None)[0] == Settings()


def test_an_empty_flag_is_a_value() -> None:
    settings, _ = load_settings({"greeting": ""}, {"VOICE_AGENT_GREETING": "Hello"}, None)
    assert settings.agent.greeting == ""


def test_keys_may_stand_under_their_group(tmp_path: Path) -> None:
    file = _file(tmp_path, '# agent\nlanguage = "de"\n[server]\nhost = "::1"\n\n[turns]\nmin_delay = 1\n')
    settings, provenance = load_settings({}, {}, file)
    assert (settings.server.host, settings.turns.min_delay, settings.agent.language) == ("::1", 1.0, "de")
    assert provenance["min_delay"].name.endswith("line 7")


def test_words_that_carried_a_value_are_its_origin() -> None:
    assert load_settings({"speed": Given("2", "--set speed")}, {}, None)[1]["speed"].name == "--set speed"


# --- every setting -----------------------------------------------------------------------------------------------


def test_keys_are_unique_across_groups_and_no_group_is_named_like_one() -> None:
    groups = dataclasses.fields(Settings)
    names = [item.name for group in groups for item in dataclasses.fields(getattr(Settings(), group.name))]
    assert len(names) == len(set(names)) == len(KEYS)
    assert not {group.name for group in groups} & set(names)


def test_every_number_has_a_range_and_its_default_lies_within() -> None:
    numbers = {name: key.default for name, key in KEYS.items() if key.type in (int, float)}
    assert set(numbers) == set(RANGES)
    for name, default in numbers.items():
        assert RANGES[name].low <= default <= RANGES[name].high, name


@pytest.mark.parametrize("name", sorted(KEYS))
def test_every_setting_can_be_set_by_environment(name: str) -> None:
    key = KEYS[name]
    written = {bool: "yes", int: "1", float: "1", str: "x", tuple[str, ...]: "a,b"}.get(key.type, "small")
    written = {"stun": "stun:h:1", "turn": "turn:h:1", "host": "::1", "language": "fr", "min_delay": "0.2"}.get(
        name, written
    )
    environ = {"VOICE_AGENT_SPEECH_THRESHOLD": "1", f"VOICE_AGENT_{name.upper()}": written}
    settings, provenance = load_settings({}, environ, None)
    value = getattr(getattr(settings, key.group), name)
    assert provenance[name].kind == "environment"
    assert type(value) is {bool: bool, int: int, float: float, tuple[str, ...]: tuple}.get(key.type, str)
    assert str(value) in (written, "True", "1.0", "('a', 'b')")


@pytest.mark.parametrize("name", sorted(RANGES))
def test_every_number_refuses_what_lies_outside(name: str) -> None:
    for wrong in (RANGES[name].low - 1, RANGES[name].high + 1):
        text = str(int(wrong) if KEYS[name].type is int else wrong)
        message = _refused(environ={f"VOICE_AGENT_{name.upper()}": text})
        assert f"{name} (VOICE_AGENT_{name.upper()})" in message
        assert f"from {RANGES[name].low:g} to {RANGES[name].high:g}" in message


# --- coercion ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", True),
        ("true", True),
        ("YES", True),
        ("on", True),
        ("0", False),
        ("False", False),
        ("no", False),
        (True, True),
    ],
)
def test_switches(written: object, value: bool) -> None:
    assert load_settings({"ice_loopback": written}, {}, None)[0].webrtc.ice_loopback is value


@pytest.mark.parametrize(
    ("written", "value"), [("a, b,", ("a", "b")), ("a", ("a",)), (["a", "b"], ("a", "b")), ((), ()), (",", ())]
)
def test_lists(written: object, value: tuple[str, ...]) -> None:
    assert load_settings({"allowed_hosts": written}, {}, None)[0].server.allowed_hosts == value


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("port", "eighty"),
        ("port", "80.5"),
        ("port", 80.0),
        ("port", True),
        ("port", []),
        ("speed", "fast"),
        ("speed", "nan"),
        ("speed", "inf"),
        ("ice_loopback", "maybe"),
        ("ice_loopback", 2),
        ("profile", "large"),
        ("profile", ["small"]),
        ("allowed_hosts", 5),
        ("allowed_hosts", [5]),
        ("greeting", 5),
        ("language", "English"),
        ("language", "xx"),
        ("stun", "example.net:3478"),
        ("host", ""),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name: str, wrong: object) -> None:
    message = _refused({name: wrong})
    assert message.startswith(f"{name} (--{name.replace('_', '-')}): {wrong!r} is not allowed; expected ")


def test_choices_are_listed() -> None:
    assert "one of default, small" in _refused({"profile": "large"})


# --- mistakes ----------------------------------------------------------------------------------------------------


def test_an_unknown_variable_is_an_error_with_the_nearest_name() -> None:
    message = _refused(environ={"VOICE_AGENT_MAX_SESSION": "3"})
    assert (
        message == "unknown setting VOICE_AGENT_MAX_SESSION in the environment; did you mean VOICE_AGENT_MAX_SESSIONS?"
    )
    assert "config show" in _refused(environ={"VOICE_AGENT_XYZZY_PLUGH_FROTZ": "3"})


def test_a_variable_in_the_wrong_case_is_an_error() -> None:
    assert "did you mean VOICE_AGENT_PORT?" in _refused(environ={"VOICE_AGENT_Port": "3"})


def test_other_variables_of_ours_and_of_others_are_let_be() -> None:
    environ = {"VOICE_AGENT_AUDIO": "/a", "VOICE_AGENT_TEST_FULL": "1", "PATH": "/bin", "voice_agent_port": "x"}
    assert load_settings({}, environ, None)[0] == Settings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prot = 1", "unknown setting prot ({file} line 1); did you mean port?"),
        ("\n[server]\nprot = 1", "unknown setting prot ({file} line 3); did you mean port?"),
        ("\n[sever]\nport = 1", "unknown group [sever] ({file} line 2); did you mean server?"),
        ("[turns]\nport = 1", "port ({file} line 2) belongs under [server], not [turns]"),
        ("port = 1\n[server]\nport = 2", "port is set twice: {file} line 1 and {file} line 3"),
        ("\n\nport = 'x'", "port ({file} line 3): 'x' is not allowed; expected a whole number from 0 to 65535"),
    ],
)
def test_a_mistake_in_the_file_names_its_line(tmp_path: Path, text: str, expected: str) -> None:
    file = _file(tmp_path, text)
    assert _refused(file=file) == expected.format(file=file)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert "No such file" in _refused(file=tmp_path / "none.toml")
    assert "no settings file" in _refused(environ={"VOICE_AGENT_CONFIG": str(tmp_path)})
    assert "not valid TOML" in _refused(file=_file(tmp_path, "port = "))
    (tmp_path / "latin.toml").write_bytes(b'greeting = "\xe9"')
    assert "not valid TOML" in _refused(file=tmp_path / "latin.toml")


def test_settings_that_contradict_each_other_are_refused() -> None:
    message = _refused({"min_delay": "2"}, {"VOICE_AGENT_MAX_DELAY": "1"})
    assert message == "min_delay = 2 (--min-delay) must not exceed max_delay = 1 (VOICE_AGENT_MAX_DELAY)"
    assert "silence_threshold" in _refused({"silence_threshold": "0.9"})


# --- safety ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "agent.example", "localhost.example", "[::]"])
def test_listening_beyond_loopback_needs_keys_or_a_decision(host: str) -> None:
    message = _refused({"host": host})
    assert f"host = {host} (--host)" in message
    assert "api_keys" in message
    assert "--allow-open" in message
    assert load_settings({"host": host, "api_keys": "k"}, {}, None)[0].server.host == host
    assert load_settings({"host": host, "allow_open": "1"}, {}, None)[0].server.allow_open
    assert "api_keys" in _refused({"host": host, "api_keys": " , "}), "commas are no keys"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.5.5", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_neither(host: str) -> None:
    assert is_loopback(host)
    assert load_settings({"host": host}, {}, None)[0].server.host == host


def test_secrets_stay_out_of_listings_and_messages() -> None:
    settings, _ = load_settings({"api_keys": "hunter2", "turn_password": "hunter2"}, {}, None)
    shown = masked(settings)
    assert "hunter2" not in str(shown)
    assert shown["api_keys"] == shown["turn_password"] == "***"
    assert masked(Settings())["api_keys"] == ()
    assert "hunter2" not in _refused({"turn_password": ["hunter2"]})


def test_lan_may_listen_beyond_loopback_because_it_demands_a_key_of_everybody() -> None:
    settings, _ = load_settings({"host": "192.168.1.5", "lan": "1"}, {}, None)
    assert settings.server.lan
    assert "serve --lan" in _refused({"host": "192.168.1.5"})


# --- hints and reading again ------------------------------------------------------------------------------------------


def test_a_value_that_is_nearly_right_gets_a_hint() -> None:
    message = _refused({"profile": "Smal"})
    assert message == "profile (--profile): 'Smal' is not allowed; expected one of default, small; did you mean small?"
    assert "did you mean" not in _refused({"profile": "enormous"})


def test_a_source_reads_the_same_places_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _file(tmp_path, "speed = 1.5\nport = 1\n")
    monkeypatch.chdir(tmp_path)
    source = Source.of({"port": "3"}, {"VOICE_AGENT_CONFIG": file.name}, None)
    assert source.file == file
    monkeypatch.chdir("/")
    assert source.load().agent.speed == 1.5
    _file(tmp_path, "speed = 2.5\nport = 1\n")
    assert source.load().agent.speed == 2.5
    assert source.load().server.port == 3
    other = _file(tmp_path, "")
    assert Source.of({}, {"VOICE_AGENT_CONFIG": "/elsewhere"}, other).file == other
    assert Source.of({}, {}, None).file is None


def test_a_pipe_as_settings_file_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    assert "no settings file" in _refused(environ={"VOICE_AGENT_CONFIG": str(pipe)})
