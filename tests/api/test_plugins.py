"""Engines of other packages: named by reference or by entry point, and refused with the plugin's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice_agent.engines.fakes import FakeTextToSpeech
from voice_agent.errors import ConfigError, ModelError
from voice_agent.modelstore import ModelStore, load_manifest
from voice_agent.plugins import check_engine, is_plugin, make_engine
from voice_agent.settings import ModelSettings, Settings

MODULE = """
from voice_agent.engines.fakes import FakeTextToSpeech
from voice_agent.errors import EngineError

class Voice(FakeTextToSpeech):
    pass

class Voices:
    @staticmethod
    def deep(settings):
        voice = FakeTextToSpeech()
        voice.speed = settings.agent.speed
        return voice

def two(settings, more):
    return None

def broken():
    raise OSError("no such sound card")

def missing_file():
    raise EngineError("parrot", "load", "parrot.bin is not there")

def nothing():
    return 42

CONSTANT = 3
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `parrot_voice`, installed as pip would, with the entry point `parrot`."""
    (tmp_path / "parrot_voice.py").write_text(MODULE)
    (tmp_path / "parrot_broken.py").write_text("import a_library_that_is_not_there")
    info = tmp_path / "parrot_speech-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot-speech\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[voice_agent.engines]\nparrot = parrot_voice:Voice\nlost = parrot_voice:Gone\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def refused(name: str, role: str = "tts") -> str:
    with pytest.raises(ConfigError) as caught:
        make_engine(role, name, Settings())
    return str(caught.value)


@pytest.mark.parametrize("name", ["parrot", "parrot_voice:Voice", "parrot_voice:Voices.deep"])
def test_an_engine_is_found_by_entry_point_and_by_reference(name: str) -> None:
    assert is_plugin(name)
    assert isinstance(make_engine("tts", name, Settings()), FakeTextToSpeech)


def test_a_factory_that_takes_an_argument_gets_the_settings() -> None:
    assert make_engine("tts", "parrot_voice:Voices.deep", Settings()).speed == Settings().agent.speed


@pytest.mark.parametrize("value", ["", "scripted", "/models/a.gguf", "voice.onnx", "piper-joe", "C:\\voice", "no.such"])
def test_files_and_names_are_no_plugins(value: str) -> None:
    assert not is_plugin(value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:make", "importing nowhere failed: ModuleNotFoundError"),
        ("nowhere:make", "is it installed in this environment, or on PYTHONPATH?"),
        ("parrot_broken:make", "a_library_that_is_not_there"),
        ("parrot_voice:Gone", "parrot_voice has no Gone"),
        ("lost", "(from the package parrot-speech): parrot_voice has no Gone"),
        ("parrot_voice:CONSTANT", "no class or function"),
        ("parrot_voice:two", "no argument, or one: the settings"),
        ("parrot_voice:broken", "failed to make its engine: OSError: no such sound card"),
        ("parrot_voice:nothing", "int is no TextToSpeech: it has no stream, warm_up, close"),
    ],
)
def test_what_is_wrong_is_said_with_the_plugins_name(name: str, message: str) -> None:
    assert refused(name).startswith(f"tts = {name}")
    assert message in refused(name)


def test_an_engine_of_the_wrong_kind_is_told_what_it_lacks() -> None:
    assert "llm = parrot: Voice is no LanguageModel: it has no end_of_turn, forget." in refused("parrot", "llm")
    assert "Voice is no SpeechToText: it has no transcribe." in refused("parrot", "stt")


def test_a_class_instead_of_an_object_is_recognised() -> None:
    with pytest.raises(ConfigError, match=r"give an object of it: FakeTextToSpeech\("):
        check_engine("tts", FakeTextToSpeech, "Agent(tts=…)")


def test_no_file_is_needed_where_a_plugin_works(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, load_manifest())
    settings = ModelSettings(llm="parrot", stt="parrot_voice:Voice", tts="parrot")
    assert sorted(store.wanted(settings)) == ["silero-vad", "smart-turn-v3.2"]
    with pytest.raises(ModelError) as caught:
        store.resolve(ModelSettings(), without=("stt", "llm", "tts"))
    assert "piper" not in str(caught.value)


def test_a_misspelt_name_hears_of_plugins(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="or a plugin: MODULE:FACTORY"):
        ModelStore(tmp_path, load_manifest()).wanted(ModelSettings(tts="parot"))
