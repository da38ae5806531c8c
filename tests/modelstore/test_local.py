from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.modelstore.serving import FakeIndex, NoWeb
from voice_agent.errors import ModelError
from voice_agent.modelstore import ModelStore, load_manifest, model_root
from voice_agent.modelstore.local import check_gguf, check_piper, check_whisper
from voice_agent.settings import ModelSettings

GRAPH = b"\x0a\x03abc"
ONNX = b"\x08\x08" + b"\x12\x04test" + b"\x3a" + bytes([len(GRAPH)]) + GRAPH
PIPER = {"audio": {"sample_rate": 22050}, "phoneme_id_map": {"a": [1]}}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensor_offset: int = 64, data: int = 128) -> bytes:
    """A small GGUF: a string, a number, two arrays, one tensor that begins `tensor_offset` bytes into the data."""
    entries = [
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("general.alignment") + struct.pack("<II", 4, 32),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + bytes(12),
    ]
    tensor = text("weight") + struct.pack("<IQQIQ", 2, 4, 8, 0, tensor_offset)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, len(entries)) + b"".join(entries) + tensor
    return header + bytes(-len(header) % 32) + bytes(data)


@pytest.fixture
def whisper(tmp_path: Path) -> Path:
    folder = tmp_path / "my-whisper"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"\x06\0\0\0\x0c\0WhisperSpec\0 and weights")
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    return folder


@pytest.fixture
def piper(tmp_path: Path) -> Path:
    voice = tmp_path / "voice.onnx"
    voice.write_bytes(ONNX)
    voice.with_name("voice.onnx.json").write_text(json.dumps(PIPER))
    return voice


def test_whole_models_of_the_users_own_pass(whisper: Path, piper: Path, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    assert check_whisper(whisper) == whisper
    assert check_piper(piper) == piper
    assert check_gguf(tmp_path / "m.gguf") == tmp_path / "m.gguf"


@pytest.mark.parametrize("missing", ["model.bin", "config.json", "tokenizer.json"])
def test_whisper_folder_must_be_complete(whisper: Path, missing: str) -> None:
    (whisper / missing).write_bytes(b"")
    with pytest.raises(ModelError, match=f"has no {missing}, or an empty one"):
        check_whisper(whisper)
    (whisper / missing).unlink()
    with pytest.raises(ModelError, match=f"has no {missing}"):
        check_whisper(whisper)


def test_whisper_must_be_a_folder_with_a_whisper_model(whisper: Path) -> None:
    with pytest.raises(ModelError, match="not a folder"):
        check_whisper(whisper / "model.bin")
    (whisper / "model.bin").write_bytes(b"\x80\x02}q\x00pytorch")
    with pytest.raises(ModelError, match="not a CTranslate2 Whisper model"):
        check_whisper(whisper)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04", b"ggml" + bytes(100)])
def test_what_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(ModelError, match="is not a GGUF file"):
        check_gguf(tmp_path / "m.gguf")


def test_missing_gguf_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no file .*m\.gguf"):
        check_gguf(tmp_path / "m.gguf")


def test_gguf_cut_off_anywhere_before_its_last_tensor_is_refused(tmp_path: Path) -> None:
    whole = gguf()
    for length in range(4, len(whole) - 64):
        (tmp_path / "m.gguf").write_bytes(whole[:length])
        with pytest.raises(ModelError, match="truncated"):
            check_gguf(tmp_path / "m.gguf")


def test_gguf_with_absurd_lengths_is_refused_quickly(tmp_path: Path) -> None:
    for content in (
        b"GGUF" + struct.pack("<IQQ", 3, 1, 2**63),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 2**62),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text("k") + struct.pack("<IIQ", 9, 8, 2**61),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text("k") + struct.pack("<I", 99),
        b"GGUF" + struct.pack("<IQQ", 1, 1, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("w") + struct.pack("<I", 2**31),
    ):
        (tmp_path / "m.gguf").write_bytes(content)
        with pytest.raises(ModelError, match="truncated or damaged"):
            check_gguf(tmp_path / "m.gguf")


def test_onnx_cut_off_anywhere_is_refused(piper: Path) -> None:
    for length in range(len(ONNX)):
        piper.write_bytes(ONNX[:length])
        with pytest.raises(ModelError, match="not an ONNX file, or it is truncated"):
            check_piper(piper)


def test_what_is_no_onnx_is_refused(piper: Path) -> None:
    for content in (b"<html>not found</html>", b"GGUF" + bytes(50), bytes(50), b"\xff" * 50):
        piper.write_bytes(content)
        with pytest.raises(ModelError, match="not an ONNX file"):
            check_piper(piper)


def test_voice_needs_its_description(piper: Path) -> None:
    description = piper.with_name("voice.onnx.json")
    for content in ("", "[]", "{}", '{"audio": {"sample_rate": "x"}, "phoneme_id_map": {}}'):
        description.write_text(content)
        with pytest.raises(ModelError, match="does not describe a Piper voice"):
            check_piper(piper)
    description.write_text(json.dumps(PIPER | {"phoneme_id_map": {}}))
    with pytest.raises(ModelError, match="no phonemes"):
        check_piper(piper)
    description.unlink()
    with pytest.raises(ModelError, match=r"voice\.onnx\.json is missing"):
        check_piper(piper)


# ---------------------------------------------------------------- settings


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    """The shipped manifest, with files of the right sizes and no content (sparse)."""
    root = tmp_path / "models"
    shipped = load_manifest()
    for model in shipped.models:
        (root / model.name).mkdir(parents=True)
        for file in model.files:
            with (root / model.name / file.name).open("wb") as stream:
                stream.truncate(file.size)
    return ModelStore(root, shipped, index=FakeIndex(), web=NoWeb())


def test_profiles_resolve_to_the_layout_the_engines_expect(store: ModelStore) -> None:
    paths = store.resolve(ModelSettings())
    assert paths.vad == store.root / "silero-vad" / "silero_vad.onnx"
    assert paths.end_of_turn == store.root / "smart-turn-v3.2" / "smart-turn-v3.2-cpu.onnx"
    assert paths.stt == store.root / "whisper-base"
    assert paths.llm == store.root / "qwen2.5-coder-0.5b" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    assert paths.tts == store.root / "piper-joe" / "en_US-joe-medium.onnx"
    small = store.resolve(ModelSettings(profile="small"))
    assert small.stt == store.root / "whisper-tiny.en"
    assert small.llm == store.root / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_name_of_the_manifest_mixes_with_any_profile(store: ModelStore) -> None:
    settings = ModelSettings(llm="smollm2-135m")
    assert store.resolve(settings).llm == store.root / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "qwen2.5-coder-0.5b" not in store.wanted(settings)


def test_paths_of_the_users_own_are_used_and_their_models_not_wanted(
    store: ModelStore, whisper: Path, piper: Path, tmp_path: Path
) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    settings = ModelSettings(stt=str(whisper), llm=str(tmp_path / "m.gguf"), tts=str(piper))
    paths = store.resolve(settings)
    assert (paths.stt, paths.llm, paths.tts) == (whisper, tmp_path / "m.gguf", piper)
    assert store.wanted(settings) == ["silero-vad", "smart-turn-v3.2"]


def test_relative_and_home_paths_work(
    store: ModelStore, piper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.resolve(ModelSettings(tts="voice.onnx")).tts == piper
    assert store.resolve(ModelSettings(tts="~/voice.onnx")).tts == piper


def test_scripted_needs_no_language_model(store: ModelStore) -> None:
    (store.root / "qwen2.5-coder-0.5b" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf").unlink()
    settings = ModelSettings(llm="scripted")
    assert store.resolve(settings).llm is None
    assert sorted(store.wanted(settings)) == ["piper-joe", "silero-vad", "smart-turn-v3.2", "whisper-base"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ModelSettings(llm="/nowhere/m.gguf"), r"no file /nowhere/m\.gguf"),
        (ModelSettings(stt="whisper-tiny"), r"setting `stt`: .*did you mean `whisper-tiny\.en`\?.*CTranslate2"),
        (ModelSettings(tts="whisper-base"), "setting `tts` names whisper-base, which is a model for `stt`"),
        (ModelSettings(stt="scripted"), "no model is called `scripted`"),
    ],
)
def test_settings_that_name_nothing_are_explained(store: ModelStore, settings: ModelSettings, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        store.resolve(settings)


def test_all_that_is_missing_is_named_in_one_command(store: ModelStore) -> None:
    (store.root / "silero-vad" / "silero_vad.onnx").unlink()
    with (store.root / "whisper-base" / "model.bin").open("rb+") as stream:
        stream.truncate(1000)
    with pytest.raises(ModelError) as caught:
        store.resolve(ModelSettings())
    message = str(caught.value)
    assert "silero-vad/silero_vad.onnx is missing" in message
    assert "whisper-base/model.bin is truncated (1,000 of 145,217,532 bytes)" in message
    assert message.endswith("Run `voice-agent models pull silero-vad whisper-base`.")


def test_weights_live_where_the_setting_or_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert model_root(ModelSettings()) == Path("/home/somebody/.cache/voice-agent/models")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/them")
    assert model_root(ModelSettings()) == Path("/var/cache/them/voice-agent/models")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert model_root(ModelSettings()) == Path("/home/somebody/.cache/voice-agent/models")
    assert model_root(ModelSettings(model_dir="~/weights")) == Path("/home/somebody/weights")
    monkeypatch.chdir(tmp_path)
    assert model_root(ModelSettings(model_dir="weights")) == tmp_path / "weights"


def test_real_weights_pass_the_same_checks(weights: Path) -> None:
    assert check_whisper(weights / "whisper-base")
    assert check_gguf(weights / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert check_piper(weights / "piper-joe" / "en_US-joe-medium.onnx")
