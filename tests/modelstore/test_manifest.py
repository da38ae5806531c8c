from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.modelstore.serving import file_entry, from_hub, from_wheels, model_entry, wheel_entry
from voice_agent.errors import ModelError
from voice_agent.modelstore import load_manifest
from voice_agent.modelstore.manifest import ROLES, WebSource, WheelSource, manifest_path, parse_manifest

SHIPPED = Path(__file__).parents[2] / "models" / "manifest.toml"


def valid() -> dict[str, Any]:
    archive, data = b"archive", b"weights"
    source = from_wheels(("some-wheel", "some/member", len(data)))
    return {
        "format": 1,
        "wheel": [wheel_entry("some-wheel", archive)],
        "model": [model_entry("tiny", "vad", file_entry("m.bin", data, source, from_hub("m.bin")))],
    }


def test_shipped_manifest_is_the_one_found_in_a_checkout() -> None:
    assert manifest_path() == SHIPPED


def test_installed_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "voice_agent" / "_models" / "manifest.toml"
    installed.parent.mkdir(parents=True)
    installed.write_bytes(SHIPPED.read_bytes())
    module = tmp_path / "voice_agent" / "modelstore" / "manifest.py"
    monkeypatch.setattr("voice_agent.modelstore.manifest.__file__", str(module))
    assert manifest_path() == installed
    assert load_manifest().profile_models("default")["tts"] == "piper-joe"


@pytest.mark.parametrize("profile", ["default", "small"])
def test_every_profile_has_one_model_for_each_role(profile: str) -> None:
    models = load_manifest().profile_models(profile)
    assert sorted(models) == sorted(ROLES)


def test_profiles_name_the_models_they_are_documented_to_have() -> None:
    manifest = load_manifest()
    common = {"vad": "silero-vad", "end_of_turn": "smart-turn-v3.2", "tts": "piper-joe"}
    assert manifest.profile_models("default") == common | {"stt": "whisper-base", "llm": "qwen2.5-coder-0.5b"}
    assert manifest.profile_models("small") == common | {"stt": "whisper-tiny.en", "llm": "smollm2-135m"}


def test_every_shipped_file_has_the_package_index_first_and_its_authors_second() -> None:
    for model in load_manifest().models:
        assert model.licence
        assert model.origin
        for file in model.files:
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.size > 0
            assert isinstance(file.sources[0], WheelSource)
            assert isinstance(file.sources[-1], WebSource)


def test_shipped_manifest_pins_each_hub_file_to_a_revision() -> None:
    hub = [
        source.url
        for model in load_manifest().models
        for file in model.files
        for source in file.sources
        if isinstance(source, WebSource) and "huggingface.co" in source.url
    ]
    assert hub
    assert all(re.search(r"/resolve/[0-9a-f]{40}/", url) for url in hub)


def test_every_pinned_archive_is_used() -> None:
    pinned = {entry["package"] for entry in tomllib.loads(SHIPPED.read_text())["wheel"]}
    used = {
        part.wheel.package
        for model in load_manifest().models
        for file in model.files
        for source in file.sources
        if isinstance(source, WheelSource)
        for part in source.parts
    }
    assert used == pinned


def test_hub_address_is_built_from_its_parts_and_can_be_a_mirror() -> None:
    source = parse_manifest(valid()).models[0].files[0].sources[1]
    assert source == WebSource("https://huggingface.co/them/model/resolve/r1/m.bin")
    mirrored = parse_manifest(valid(), hub="http://127.0.0.1:9/").models[0].files[0].sources[1]
    assert mirrored == WebSource("http://127.0.0.1:9/them/model/resolve/r1/m.bin")


@pytest.mark.parametrize(
    ("typed", "meant"), [("whisper-tny.en", "whisper-tiny.en"), ("smolm2", "smollm2-135m"), ("piper-jo", "piper-joe")]
)
def test_unknown_name_gets_the_nearest_spelling(typed: str, meant: str) -> None:
    with pytest.raises(ModelError, match=re.escape(f"did you mean `{meant}`?")):
        load_manifest().model(typed)


def test_unknown_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(ModelError, match=r"known are: silero-vad, .*piper-joe"):
        load_manifest().model("xyz")


def test_unknown_profile_gets_the_list() -> None:
    with pytest.raises(ModelError, match="known are default, small"):
        load_manifest().profile_models("large")


def _set(path: str, value: object) -> Any:
    def change(data: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        place: Any = data
        for step in parents:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value

    return pytest.param(change, id=f"{path}={value}")


@pytest.mark.parametrize(
    "change",
    [
        _set("format", 2),
        _set("wheel/0/sha256", "abc"),
        _set("wheel/0/size", 0),
        _set("wheel/0/package", "some wheel; rm -rf"),
        _set("wheel/0/version", "1.0 --index-url http://evil"),
        _set("wheel/0/package", "another-wheel"),
        _set("model/0/name", "../up"),
        _set("model/0/role", "translator"),
        _set("model/0/profiles", ["default"]),
        _set("model/0/file", []),
        _set("model/0/file/0/name", "../../.bashrc"),
        _set("model/0/file/0/name", "/etc/passwd"),
        _set("model/0/file/0/name", ".hidden"),
        _set("model/0/file/0/size", -1),
        _set("model/0/file/0/size", 8),
        _set("model/0/file/0/sha256", "D" * 64),
        _set("model/0/file/0/sources", []),
        _set("model/0/file/0/sources", [{"ftp": "x"}]),
        _set("model/0/file/0/sources", [{"url": "http://not-encrypted/x"}]),
    ],
)
def test_manifest_with_a_mistake_is_refused(change: Any) -> None:
    data = copy.deepcopy(valid())
    parse_manifest(data)
    change(data)
    with pytest.raises(ModelError, match="manifest"):
        parse_manifest(data)


def test_two_models_of_one_name_are_refused() -> None:
    data = valid()
    data["model"] *= 2
    with pytest.raises(ModelError, match="same name"):
        parse_manifest(data)


def test_unreadable_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        load_manifest(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("format = ")
    with pytest.raises(ModelError, match="not valid TOML"):
        load_manifest(tmp_path / "bad.toml")
