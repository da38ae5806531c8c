"""Which engine a setting names, and how it is made: the only file that names concrete engines.

Everything here blocks (it reads files and asks for memory) and belongs into a thread. Raises ModelError, EngineError
and ConfigError with a text for the user.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.llama_engine import LlamaEngine
from voice_agent.engines.llama_requantise import fast_copy
from voice_agent.engines.piper import PiperSpeaker
from voice_agent.engines.ports import EndOfTurn, LanguageModel, SpeechToText, TextToSpeech, VoiceActivityModel
from voice_agent.engines.scripted_llm import ScriptedEngine
from voice_agent.engines.silero_vad import SileroVad
from voice_agent.engines.smart_turn import SmartTurn
from voice_agent.engines.whisper import WhisperRecogniser
from voice_agent.modelstore import SCRIPTED, ModelPaths, ModelStore, load_manifest, model_root
from voice_agent.plugins import make_engine
from voice_agent.settings import Settings

TOKENS_PER_CALL = 2048
"""Cache of the language model per call: about forty turns of short spoken replies."""


class EngineMakers:
    """Engines of one process: they share the cores through one gate."""

    def __init__(self, settings: Settings, paths: ModelPaths, own: Mapping[str, Any]) -> None:
        """`own`: engines that the embedding program brings, by setting (`llm`, `stt`, `tts`)."""
        self._settings = settings
        self._paths = paths
        self._own = own
        self._gate = CpuGate()
        self._threads = settings.models.threads or min(os.cpu_count() or 1, 4)

    def voice_activity(self) -> VoiceActivityModel:
        return SileroVad(self._paths.vad)

    def end_of_turn(self) -> EndOfTurn:
        return SmartTurn(self._paths.end_of_turn, self._gate)

    def recogniser(self) -> SpeechToText:
        if self._paths.stt is None:
            plugin: SpeechToText = self._foreign("stt")
            return plugin
        # One lane per core: a recognition that was overtaken by new words must not hold up the next.
        return WhisperRecogniser(self._paths.stt, self._threads, self._gate, lanes=self._threads)

    def language_model(self) -> LanguageModel:
        models, path = self._settings.models, self._paths.llm
        if path is None:
            if models.llm == SCRIPTED and "llm" not in self._own:
                return ScriptedEngine()
            plugin: LanguageModel = self._foreign("llm")
            return plugin
        if models.llm_fast and not models.llm:
            path = fast_copy(path, model_root(models) / "made-here", self._threads)
        calls = self._settings.server.max_sessions
        return LlamaEngine(
            path,
            threads=self._threads,
            gate=self._gate,
            n_ctx=max(4096, TOKENS_PER_CALL * calls),
            # A call needs two for a moment, when a revised reply begins before the one it replaces is gone.
            max_conversations=2 * calls,
        )

    def voice(self, settings: Settings | None = None) -> TextToSpeech:
        """The voice of the settings given: those of the start, or (then never the program's own) others."""
        if settings is None and "tts" in self._own:
            own: TextToSpeech = self._own["tts"]
            return own
        return make_voice(settings or self._settings, self._gate, self._threads)

    def _foreign(self, role: str) -> Any:
        """The engine of somebody else: the embedding program's, or a plugin's."""
        if role in self._own:
            return self._own[role]
        return make_engine(role, getattr(self._settings.models, role), self._settings)


def make_voice(settings: Settings, gate: CpuGate | None = None, threads: int = 2) -> TextToSpeech:
    """The configured voice; alone, without a gate, it speaks the lines of a simulated caller."""
    store = ModelStore(model_root(settings.models), load_manifest())
    path: Path | None = store.resolve(settings.models, without=("llm", "stt")).tts
    if path is None:
        plugin: TextToSpeech = make_engine("tts", settings.models.tts, settings)
        return plugin
    return PiperSpeaker(path, gate, threads)
