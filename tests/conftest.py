"""Shared fixtures. Tests that need weights take `weights`; they fail, not skip, where `make models` has not run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _model_dir() -> Path:
    if named := os.environ.get("VOICE_AGENT_MODEL_DIR"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "voice-agent" / "models"


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder of model weights: MODEL/FILE, as the model store lays them out."""
    folder = _model_dir()
    if not (folder / "silero-vad" / "silero_vad.onnx").is_file():
        pytest.fail(f"no model weights in {folder}: run `make models` first")
    return folder


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Real recordings, where this machine has them (VOICE_AGENT_AUDIO, or shared/audio beside the checkout)."""
    named = os.environ.get("VOICE_AGENT_AUDIO")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "audio"
    if not folder.is_dir():
        pytest.skip(f"no real recordings in {folder} (set VOICE_AGENT_AUDIO)")
    return folder
