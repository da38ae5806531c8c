"""Reads settings: flags over environment over one TOML file over the defaults in `settings.py`.

Nothing else in the program reads the environment for settings. Every mistake (an unknown key, a value that cannot be,
two settings that contradict each other) is a ConfigError that names the key, where it was written and what is allowed,
so that a typing error never silently leaves a default in place.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import stat
import tomllib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from voice_agent.errors import ConfigError
from voice_agent.languages import ALLOWED, LANGUAGE
from voice_agent.settings import Settings

ENV_PREFIX = "VOICE_AGENT_"
CONFIG_VARIABLE = "VOICE_AGENT_CONFIG"
OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "VOICE_AGENT_AUDIO"})
"""Variables with our prefix that are not settings: the TOML file, and the folder of recordings for the tests."""
TEST_PREFIX = "VOICE_AGENT_TEST_"
SECRETS = frozenset({"api_keys", "turn_password"})
"""Keys whose values appear in no message and no listing."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written."""

    kind: Literal["default", "file", "environment", "flag"]
    name: str
    """What a person looks for: `--port`, `VOICE_AGENT_PORT`, `agent.toml line 3`, `default`."""


Provenance = Mapping[str, Origin]
"""The origin of every setting, by key."""

DEFAULT = Origin("default", "default")


@dataclass(frozen=True, slots=True)
class Given:
    """A value from the command line together with the words that carried it, where they are not `--KEY`."""

    value: object
    written: str


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: where it lives in `Settings`, and its type."""

    name: str
    group: str
    type: Any
    default: Any


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers a setting may take; both ends are allowed."""

    low: float
    high: float


_SECONDS = Range(0.001, 3600)
_SHARE = Range(0, 1)
_BUDGET = Range(1, 60_000)

RANGES: Mapping[str, Range] = {
    "port": Range(0, 65_535),
    "max_sessions": Range(1, 10_000),
    "keep_sessions": Range(0, 86_400),
    "threads": Range(0, 256),
    "speed": Range(0.25, 4),
    "max_reply_tokens": Range(1, 4096),
    "temperature": Range(0, 2),
    "speech_threshold": _SHARE,
    "silence_threshold": _SHARE,
    "min_speech": _SECONDS,
    "min_silence": _SECONDS,
    "pre_roll": Range(0, 5),
    "min_delay": _SECONDS,
    "max_delay": _SECONDS,
    "claim_speech": _SECONDS,
    "max_sound": Range(1, 30),
    "connect_timeout": _SECONDS,
    "dead_after": _SECONDS,
    "budget_endpointing_ms": _BUDGET,
    "budget_recognition_ms": _BUDGET,
    "budget_first_token_ms": _BUDGET,
    "budget_first_clause_ms": _BUDGET,
    "budget_synthesis_ms": _BUDGET,
    "budget_send_ms": _BUDGET,
}
"""Every numeric setting has a line here (a test sees to it). `max_sound` ends at Whisper's 30 s window."""

PATTERNS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "host": (re.compile(r"\S+"), "an address or a name, such as 127.0.0.1"),
    "language": (LANGUAGE, ALLOWED),
    "stun": (re.compile(r"(stuns?:\S+)?"), "stun:HOST:PORT, or nothing"),
    "turn": (re.compile(r"(turns?:\S+)?"), "turn:HOST:PORT?transport=udp, or nothing"),
}


def _keys() -> dict[str, Key]:
    found: dict[str, Key] = {}
    defaults = Settings()
    for group in fields(Settings):
        value = getattr(defaults, group.name)
        hints = get_type_hints(type(value))
        for item in fields(value):
            found[item.name] = Key(item.name, group.name, hints[item.name], getattr(value, item.name))
    return found


KEYS: Mapping[str, Key] = types.MappingProxyType(_keys())
"""Every setting by its key; keys are unique across groups."""


def load_settings(
    cli: Mapping[str, object], environ: Mapping[str, str], file: Path | None
) -> tuple[Settings, Provenance]:
    """Settings from the three places a person may write them, and where each one came from.

    `cli` has settings by key: typed, as text, or as `Given`; None means the flag was not given. `file` wins over
    VOICE_AGENT_CONFIG; neither need be there. Raises ConfigError.
    """
    values: dict[str, Any] = {name: key.default for name, key in KEYS.items()}
    origins: dict[str, Origin] = dict.fromkeys(KEYS, DEFAULT)
    if file is None and (named := environ.get(CONFIG_VARIABLE, "")):
        file = Path(named)
    layers = (_read_file(file) if file else []) + _read_environment(environ) + _read_flags(cli)
    for name, raw, origin in layers:
        values[name] = _coerce(_known(name, origin), raw, origin)
        origins[name] = origin
    settings = _build(values)
    _check_together(settings, origins)
    return settings, origins


@dataclass(frozen=True, slots=True)
class Source:
    """What `load_settings` was called with, to read the settings again while the program runs."""

    cli: Mapping[str, object]
    environ: Mapping[str, str]
    file: Path | None

    @classmethod
    def of(cls, cli: Mapping[str, object], environ: Mapping[str, str], file: Path | None) -> Source:
        """`file` as given on the command line; VOICE_AGENT_CONFIG names it otherwise."""
        named = environ.get(CONFIG_VARIABLE, "")
        # Absolute, or a reload would look elsewhere if the program ever changed its folder.
        chosen = file or (Path(named) if named else None)
        return cls(cli, environ, chosen.absolute() if chosen else None)

    def load(self) -> Settings:
        """Read everything again. Raises ConfigError."""
        return load_settings(self.cli, self.environ, self.file)[0]


def masked(settings: Settings) -> dict[str, Any]:
    """All effective values by key, with secrets replaced by stars; for listings and logs."""
    values = {name: getattr(getattr(settings, key.group), name) for name, key in KEYS.items()}
    return {name: "***" if name in SECRETS and value else value for name, value in values.items()}


_Layer = list[tuple[str, object, Origin]]


def _read_flags(cli: Mapping[str, object]) -> _Layer:
    layer: _Layer = []
    for name, value in cli.items():
        given = value if isinstance(value, Given) else Given(value, "--" + name.replace("_", "-"))
        if given.value is not None:
            layer.append((name, given.value, Origin("flag", given.written)))
    return layer


def _read_environment(environ: Mapping[str, str]) -> _Layer:
    layer: _Layer = []
    for variable, value in sorted(environ.items()):
        ours = variable.startswith(ENV_PREFIX) and not variable.startswith(TEST_PREFIX)
        if not ours or variable in OTHER_VARIABLES or value == "":
            continue
        name = variable.removeprefix(ENV_PREFIX).lower()
        if name not in KEYS or variable != ENV_PREFIX + name.upper():
            # Compared without the prefix, which alone would make any two names look alike.
            known = {other.removeprefix(ENV_PREFIX).lower() for other in OTHER_VARIABLES} | set(KEYS)
            hint = _nearest(name, known, lambda key: ENV_PREFIX + key.upper())
            raise ConfigError(f"unknown setting {variable} in the environment{hint}")
        layer.append((name, value, Origin("environment", variable)))
    return layer


LARGEST_FILE = 1 << 20
"""Bytes of a settings file."""


def _read_file(file: Path) -> _Layer:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:  # a pipe would be waited for for ever
            raise ConfigError(f"{file} is no settings file: not a plain file, or larger than {LARGEST_FILE >> 20} MB")
        text = file.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read the settings file {file}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    groups = {group.name for group in fields(Settings)}
    layer: _Layer = []
    seen: dict[str, Origin] = {}

    def add(name: str, value: object, group: str) -> None:
        origin = Origin("file", f"{file} line {_line_of(text, group, name)}")
        if group and name in KEYS and KEYS[name].group != group:
            raise ConfigError(f"{name} ({origin.name}) belongs under [{KEYS[name].group}], not [{group}]")
        if name in seen:
            raise ConfigError(f"{name} is set twice: {seen[name].name} and {origin.name}")
        seen[name] = origin
        layer.append((name, value, origin))

    for name, value in document.items():
        # `turn` and `stun` are settings; a group never shares its name with one (a test sees to it).
        if isinstance(value, dict):
            if name not in groups:
                where = f"{file} line {_line_of(text, name, '')}"
                raise ConfigError(f"unknown group [{name}] ({where}){_nearest(name, groups)}")
            for inner, inner_value in value.items():
                add(inner, inner_value, name)
        else:
            add(name, value, "")
    return layer


def _line_of(text: str, group: str, name: str) -> int:
    """The line (from 1) on which `name` is written in `group`, or the group's own if `name` is empty.

    tomllib keeps no positions. This reads plain `key = value` lines and table headers; for a more artful spelling it
    answers with the nearest line it knows, which is only used in messages.
    """
    current, nearest = "", 1
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*[\"']?([\w-]+)", line):
            current = header[1]
            if current == group:
                nearest = number
                if not name:
                    return number
        elif name and current == group and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line):
            return number
    return nearest


def _known(name: str, origin: Origin) -> Key:
    if name in KEYS:
        return KEYS[name]
    raise ConfigError(f"unknown setting {name} ({origin.name}){_nearest(name, KEYS)}")


def _nearest(word: str, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    close = difflib.get_close_matches(word.lower(), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {spell(close[0])}?" if close else "; `voice-agent config show` lists all settings"


def _nearest_choice(key: Key, raw: object) -> str:
    choices = get_args(key.type) if get_origin(key.type) is Literal else ()
    close = difflib.get_close_matches(str(raw).strip().lower(), choices, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def allowed_values(key: Key) -> str:
    """What a setting may be, in words: `a number from 0.25 to 4`."""
    if key.name in PATTERNS:
        return PATTERNS[key.name][1]
    _, allowed = _convert(key.type, None)
    limits = RANGES.get(key.name)
    return f"{allowed} from {limits.low:g} to {limits.high:g}" if limits else allowed


def _coerce(key: Key, raw: object, origin: Origin) -> Any:
    value, _ = _convert(key.type, raw)
    if limits := RANGES.get(key.name):
        # Written this way round so that NaN, which compares as neither, is refused.
        value = value if value is not None and limits.low <= value <= limits.high else None
    if value is not None and key.name in PATTERNS:
        value = value if PATTERNS[key.name][0].fullmatch(value) else None
    if value is None:
        shown = "the value given" if key.name in SECRETS else repr(raw)
        hint = _nearest_choice(key, raw)
        raise ConfigError(f"{key.name} ({origin.name}): {shown} is not allowed; expected {allowed_values(key)}{hint}")
    return value


_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def _convert(kind: Any, raw: object) -> tuple[Any, str]:
    """The value as the setting's type (None: it cannot be), and what is allowed, in words."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return (raw if raw in choices else None), "one of " + ", ".join(choices)
    if get_origin(kind) is tuple:
        return _as_texts(raw), "a list of texts, or texts separated by commas"
    if kind is bool:
        return _as_bool(raw), "1, true, yes, on, 0, false, no or off"
    if kind is int:
        return _as_number(raw, int), "a whole number"
    if kind is float:
        return _as_number(raw, float), "a number"
    return (raw if isinstance(raw, str) else None), "text"


def _as_texts(raw: object) -> tuple[str, ...] | None:
    if isinstance(raw, str):
        raw = raw.split(",")
    if not isinstance(raw, list | tuple) or not all(isinstance(item, str) for item in raw):
        return None
    return tuple(item.strip() for item in raw if item.strip())


def _as_bool(raw: object) -> bool | None:
    if isinstance(raw, bool):
        return raw
    word = str(raw).strip().lower() if isinstance(raw, str | int) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def _as_number(raw: object, kind: type[int] | type[float]) -> float | None:
    # bool is an int in Python; `port = true` is a mistake all the same.
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    if kind is int and isinstance(raw, float):
        return None
    try:
        return kind(raw)
    except ValueError:
        return None


def _build(values: Mapping[str, Any]) -> Settings:
    groups = {
        group.name: type(getattr(Settings(), group.name))(
            **{name: values[name] for name, key in KEYS.items() if key.group == group.name}
        )
        for group in fields(Settings)
    }
    return Settings(**groups)


def _check_together(settings: Settings, origins: Provenance) -> None:
    turns, server = settings.turns, settings.server
    for low, high in (("min_delay", "max_delay"), ("silence_threshold", "speech_threshold")):
        smaller, larger = getattr(turns, low), getattr(turns, high)
        if smaller > larger:
            raise ConfigError(
                f"{low} = {smaller:g} ({origins[low].name}) must not exceed {high} = {larger:g} ({origins[high].name})"
            )
    if not is_loopback(server.host) and not server.api_keys and not server.allow_open and not server.lan:
        raise ConfigError(
            f"host = {server.host} ({origins['host'].name}) lets other machines in, and there are no keys: "
            "use lan (serve --lan) for phones on your network, set api_keys (VOICE_AGENT_API_KEYS=KEY,…), or "
            "allow_open (VOICE_AGENT_ALLOW_OPEN=1, serve --allow-open) to let anybody who reaches the port use it"
        )


def is_loopback(host: str) -> bool:
    """True if listening on `host` reaches this machine only. A name other than localhost is taken as reachable."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
