"""Checks of what the settings ask for: model files, the port, a microphone."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import httpx

from voice_agent.config import is_loopback
from voice_agent.doctor.check import Check, Verdict
from voice_agent.errors import VoiceAgentError
from voice_agent.modelstore import FileStatus, ModelStore, load_manifest, model_root
from voice_agent.settings import ModelSettings, ServerSettings
from voice_agent.transports.local.sound_card import load_sounddevice


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the configured models."""

    folder: Path
    all: int
    missing: int
    language_model: int
    """0: the scripted one."""


def sizes(settings: ModelSettings) -> Sizes:
    """Raises VoiceAgentError where the settings name models that do not exist."""
    store = ModelStore(model_root(settings), load_manifest())
    wanted = [store.manifest.model(name) for name in store.wanted(settings)]
    language = sum(model.size for model in wanted if model.role == "llm")
    own = Path(settings.llm).expanduser() if settings.llm else None
    if own is not None and own.is_file():
        language = own.stat().st_size
    missing = sum(model.size for model in wanted if not store.present(model.name))
    total = sum(model.size for model in wanted)
    if own is not None and own.is_file():
        total += language
    return Sizes(store.root, total, missing, language)


def models(settings: ModelSettings) -> Check:
    """Reads every file and compares its checksum; the user's own files have none, so only their kind is checked."""
    try:
        store = ModelStore(model_root(settings), load_manifest())
        states = store.verify(store.wanted(settings))
        wrong = [state for state in states if state.status is not FileStatus.OK]
        if wrong:
            names = " ".join(dict.fromkeys(state.model for state in wrong))
            found = "; ".join(f"{state.model}/{state.file} is {state.status.value}" for state in wrong)
            return Check("models", Verdict.PROBLEM, found, f"run `voice-agent models pull {names}`")
        store.resolve(settings)
    except VoiceAgentError as error:
        return Check("models", Verdict.PROBLEM, str(error), "see `voice-agent models list`")
    size = sum(state.size for state in states)
    found = f"{len(states)} files, {size / 1e6:.0f} MB, all with the right checksum, in {store.root}"
    return Check("models", Verdict.OK, found, figures={"files": len(states), "bytes": size})


def port(settings: ServerSettings) -> Check:
    """Whether `serve` could listen. Nothing is left open."""
    name, host = f"port {settings.port}", settings.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if is_loopback(host) and _is_an_agent(settings.port):
            return Check(name, Verdict.NOTE, "a voice-agent answers there already", "stop it first, or use --port 0")
        return Check(name, Verdict.PROBLEM, f"cannot listen on {host}: {why}", "use --port 0, which takes a free one")
    return Check(name, Verdict.OK, f"free on {host}")


def _is_an_agent(number: int) -> bool:
    try:
        answer = httpx.get(f"http://127.0.0.1:{number}/readyz", timeout=2, trust_env=False)
        return isinstance(answer.json().get("ready"), bool)
    except (httpx.HTTPError, ValueError, AttributeError):
        return False


def microphone() -> Check:
    """For `voice-agent talk` alone: a call in the browser uses the browser's microphone."""
    elsewhere = "calls in the browser do not need it"
    try:
        sounddevice = load_sounddevice()
    except VoiceAgentError as error:
        return Check("microphone", Verdict.NOTE, f"not looked for; {elsewhere}", str(error))
    try:
        device = sounddevice.query_devices(kind="input")
    except (sounddevice.PortAudioError, ValueError):
        advice = "plug one in and choose it as the system's input if you want `voice-agent talk`"
        return Check("microphone", Verdict.NOTE, f"none found; {elsewhere}", advice)
    return Check("microphone", Verdict.OK, str(device["name"]))
