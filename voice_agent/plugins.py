"""Engines that other packages bring: found by name, made, and checked against the port they are to fit.

The settings `llm`, `stt` and `tts` may name one in two ways: `package.module:make`, or the name of an entry point in
the group `voice_agent.engines`. Either leads to a class or function that is called with the `Settings` if it takes an
argument, otherwise with nothing, and gives an engine of `engines/ports.py`. It is called in a thread and may take its
time. Every problem is a ConfigError that names the plugin.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from voice_agent.errors import ConfigError, VoiceAgentError
from voice_agent.settings import Settings

GROUP = "voice_agent.engines"

LIFE = ("warm_up", "close")
PORTS = {
    "llm": ("LanguageModel", ("stream", "end_of_turn", "forget", *LIFE)),
    "stt": ("SpeechToText", ("transcribe", *LIFE)),
    "tts": ("TextToSpeech", ("stream", *LIFE)),
}
"""For each setting the Protocol in `engines/ports.py` and its methods."""

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_plugin(value: str) -> bool:
    """Whether a value of `llm`, `stt` or `tts` has the form of a reference, or is the name of an entry point."""
    return bool(value) and (_REFERENCE.fullmatch(value) is not None or _entry(value) is not None)


def make_engine(role: str, name: str, settings: Settings) -> Any:
    """The engine that the setting `role` names. Raises ConfigError; VoiceAgentErrors of the plugin's own pass."""
    factory = _load(role, name)
    arguments = (settings,) if _wants_settings(role, name, factory) else ()
    try:
        engine = factory(*arguments)
    except VoiceAgentError:
        raise
    except Exception as error:
        raise ConfigError(f"{role} = {name}: the plugin failed to make its engine: {_shown(error)}") from error
    check_engine(role, engine, f"{role} = {name}")
    return engine


def check_engine(role: str, engine: object, where: str) -> None:
    """Raises ConfigError if the object lacks a method of its port; `where` says who brought it."""
    port, methods = PORTS[role]
    if isinstance(engine, type):
        raise ConfigError(f"{where}: {engine.__name__} is a class; give an object of it: {engine.__name__}(…)")
    missing = [method for method in methods if not callable(getattr(engine, method, None))]
    if missing:
        raise ConfigError(
            f"{where}: {type(engine).__name__} is no {port}: it has no {', '.join(missing)}. "
            "voice_agent/engines/ports.py says what each method does, docs/writing-an-engine.md shows one"
        )


def _entry(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


def _load(role: str, name: str) -> Callable[..., Any]:
    entry = _entry(name)
    reference = entry.value if entry is not None else name
    package = entry.dist.name if entry is not None and entry.dist is not None else ""
    where = f"{role} = {name} (from the package {package})" if package else f"{role} = {name}"
    module, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        hint = (
            "; is it installed in this environment, or on PYTHONPATH?" if isinstance(error, ModuleNotFoundError) else ""
        )
        raise ConfigError(f"{where}: importing {module} failed: {_shown(error)}{hint}") from error
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ConfigError(f"{where}: {module} has no {path}") from error
    if not callable(found):
        raise ConfigError(f"{where}: {reference} is no class or function that makes an engine")
    factory: Callable[..., Any] = found
    return factory


def _wants_settings(role: str, name: str, factory: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [item for item in parameters if item.default is item.empty and item.kind not in optional]
    if len(needed) > 1 or any(item.kind is item.KEYWORD_ONLY for item in needed):
        raise ConfigError(f"{role} = {name}: it must take no argument, or one: the settings")
    return bool(needed)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
