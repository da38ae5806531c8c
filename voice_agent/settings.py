"""All settings, one frozen group per concern.

Field names are unique across groups: the field `ice_loopback` is the environment variable VOICE_AGENT_ICE_LOOPBACK
and the TOML key `ice_loopback` (at top level or under its group's name). `config.py` reads them; nothing else does.
Seconds are floats; `_ms` appears only where people read or write milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

DEFAULT_PROMPT = (
    "You are a friendly voice assistant on a live call. Everything you write is read aloud. "
    "Answer in one or two short spoken sentences, in plain words. "
    "Never use lists, markdown, code, emoji or links. If you are unsure, say so briefly."
)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8080
    """0 takes a free one."""
    max_sessions: int = 4
    """Calls at the same time; one more is refused with 503."""
    api_keys: tuple[str, ...] = ()
    """Bearer keys. Without any, the server listens on loopback only, unless `allow_open` is set."""
    allow_open: bool = False
    """Listen beyond loopback without keys: anybody who can reach the port can use the agent."""
    allowed_hosts: tuple[str, ...] = ()
    """Names besides loopback and `host` that requests may carry in Host and Origin."""
    lan: bool = False
    """Serve HTTPS to the local network: phones join with a one-time link. `host` left at loopback becomes the
    machine's address there."""
    trace_dir: str = ""
    """Where to write one SESSION.jsonl per call; empty: nowhere."""
    keep_sessions: float = 600.0
    """Seconds that history and report of an ended call stay readable."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    profile: Literal["default", "small"] = "default"
    """Which set of models: `small` is for little memory and slow cores."""
    model_dir: str = ""
    """Where weights live; empty: $XDG_CACHE_HOME/voice-agent/models."""
    stt: str = ""
    """A CTranslate2 Whisper directory, or a plugin; empty: the profile's."""
    llm: str = ""
    """A GGUF file, `scripted`, or a plugin (`package.module:make`, or its registered name); empty: the profile's."""
    llm_fast: bool = True
    """Make and use a faster copy of the profile's language model, rounded to 4 bits; own files are used as they are."""
    tts: str = ""
    """A Piper voice (.onnx beside its .onnx.json), or a plugin; empty: the profile's."""
    threads: int = 0
    """Threads an engine may use; 0: the number of cores, at most 4."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    system_prompt: str = DEFAULT_PROMPT
    """What the agent is told to be."""
    greeting: str = ""
    """Said when a call begins; empty: the agent waits for the caller."""
    language: str = "en"
    """ISO 639-1 code of the caller's language, or `auto`."""
    speed: float = 1.0
    """Speaking rate; 2.0 is twice as fast."""
    max_reply_tokens: int = 120
    """Tokens after which a reply is cut off."""
    temperature: float = 0.3
    """How freely the language model chooses its words; 0 always takes the likeliest."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    speech_threshold: float = 0.5
    """Speech begins when the voice activity probability reaches this …"""
    silence_threshold: float = 0.35
    """… and ends when it falls below this."""
    min_speech: float = 0.064
    """Seconds of speech that begin an utterance."""
    min_silence: float = 0.064
    """Seconds of silence that pause an utterance and start speculative work."""
    pre_roll: float = 0.5
    """Seconds of audio kept from before speech was detected."""
    min_delay: float = 0.3
    """Silence before a turn that sounds complete is over."""
    max_delay: float = 2.4
    """Silence before any turn is over."""
    claim_speech: float = 0.8
    """Seconds of overlapping speech that are a barge-in whatever the words are."""
    max_sound: float = 15.0
    """Seconds of uninterrupted sound after which it is recognised in the middle; without words it is dropped."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Milliseconds each stage of a turn may take; the sum is the voice-to-voice budget."""

    budget_endpointing_ms: int = 300
    budget_recognition_ms: int = 150
    budget_first_token_ms: int = 120
    budget_first_clause_ms: int = 100
    budget_synthesis_ms: int = 80
    budget_send_ms: int = 50


@dataclass(frozen=True, slots=True)
class WebRtcSettings:
    stun: str = ""
    """stun:HOST:PORT; empty: none."""
    turn: str = ""
    """turn:HOST:PORT?transport=udp; empty: none."""
    turn_user: str = ""
    """Who the TURN server takes us for."""
    turn_password: str = ""
    """What goes with `turn_user`."""
    ice_loopback: bool = False
    """Add 127.0.0.1 to the candidates, for browsers and tests on this machine."""
    connect_timeout: float = 20.0
    """Seconds from the answer until media must flow."""
    dead_after: float = 5.0
    """Seconds without any packet after which a peer counts as gone."""


@dataclass(frozen=True, slots=True)
class Settings:
    server: ServerSettings = field(default_factory=ServerSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    turns: TurnSettings = field(default_factory=TurnSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    webrtc: WebRtcSettings = field(default_factory=WebRtcSettings)
