"""The manifest: which model files exist, what they weigh, and where the same bytes can be had.

The data is models/manifest.toml. Reading it checks everything that a later step relies on: names that stay inside
the store's folder, checksums of the right shape, parts that add up to the file, one model per role and profile.
A mistake there is ours, so it raises ModelError with the place in the file.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voice_agent.errors import ModelError

ROLES = ("vad", "end_of_turn", "stt", "llm", "tts")
"""What a profile must have, one model each."""

_FORMAT = 1
_HUB = "https://huggingface.co"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PACKAGE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One archive of a package index, pinned by version and checksum."""

    package: str
    version: str
    size: int
    """Bytes to download."""
    sha256: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One member of an archive: a whole file or one part of it."""

    wheel: Wheel
    path: str
    size: int
    """Bytes after unpacking."""


@dataclass(frozen=True, slots=True)
class WheelSource:
    parts: tuple[WheelPart, ...]
    """Joined in this order."""

    def __str__(self) -> str:
        return "package index, " + ", ".join(str(part.wheel) for part in self.parts)


@dataclass(frozen=True, slots=True)
class WebSource:
    url: str

    def __str__(self) -> str:
        return self.url.split("://", 1)[-1].split("/resolve/", 1)[0].split("/raw/", 1)[0]


Source = WheelSource | WebSource


@dataclass(frozen=True, slots=True)
class ModelFile:
    name: str
    size: int
    sha256: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    role: str
    profiles: tuple[str, ...]
    licence: str
    origin: str
    """Where the authors publish it, with the revision."""
    summary: str
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def main_file(self) -> ModelFile:
        """The weights: the largest file."""
        return max(self.files, key=lambda file: file.size)


@dataclass(frozen=True, slots=True)
class Manifest:
    models: tuple[Model, ...]

    def model(self, name: str) -> Model:
        """The model of that name. Raises ModelError with the nearest spelling."""
        for model in self.models:
            if model.name == name:
                return model
        names = [model.name for model in self.models]
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        hint = f"did you mean `{near[0]}`?" if near else f"known are: {', '.join(names)}."
        raise ModelError(f"no model is called `{name}`: {hint} `voice-agent models list` shows them all.")

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(profile for model in self.models for profile in model.profiles))

    def profile_models(self, profile: str) -> dict[str, str]:
        """The model name of each role. Raises ModelError when there is no such profile."""
        if profile not in self.profiles:
            raise ModelError(f"no profile is called `{profile}`: known are {', '.join(self.profiles)}.")
        return {model.role: model.name for model in self.models if profile in model.profiles}


def manifest_path() -> Path:
    """In `_models` of an installed package (pyproject.toml puts it there), in the checkout's models/ otherwise."""
    package = Path(__file__).parents[1]
    installed = package / "_models" / "manifest.toml"
    return installed if installed.is_file() else package.parent / "models" / "manifest.toml"


def load_manifest(path: Path | None = None, hub: str = _HUB) -> Manifest:
    """Read and check the manifest. `hub` replaces the address of the official hub (a mirror, a test server)."""
    path = path or manifest_path()
    try:
        with path.open("rb") as file:
            return parse_manifest(tomllib.load(file), hub)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}): reinstall the package.") from error
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"the model manifest {path} is not valid TOML: {error}") from error


def parse_manifest(data: Mapping[str, Any], hub: str = _HUB) -> Manifest:
    """Build a Manifest from parsed TOML. Raises ModelError naming the entry that is wrong."""
    if data.get("format") != _FORMAT:
        raise ModelError(f"the model manifest has format {data.get('format')!r}, this program reads {_FORMAT}.")
    try:
        wheels = {entry["package"]: _wheel(entry) for entry in data.get("wheel", ())}
        models = tuple(_model(entry, wheels, hub) for entry in data["model"])
    except KeyError as error:
        raise ModelError(f"the model manifest lacks {error}, or names an archive it does not pin.") from error
    if len({model.name for model in models}) != len(models):
        raise ModelError("the model manifest has two models of the same name.")
    _check_profiles(models)
    return Manifest(models)


def _wheel(entry: Mapping[str, Any]) -> Wheel:
    wheel = Wheel(entry["package"], entry["version"], entry["size"], entry["sha256"])
    _require(_PACKAGE.fullmatch(wheel.package) is not None, f"package name {wheel.package!r}")
    _require(_SAFE_NAME.fullmatch(wheel.version) is not None, f"version of {wheel.package}")
    _require(_SHA256.fullmatch(wheel.sha256) is not None, f"sha256 of {wheel.package}")
    _require(wheel.size > 0, f"size of {wheel.package}")
    return wheel


def _model(entry: Mapping[str, Any], wheels: Mapping[str, Wheel], hub: str) -> Model:
    name = entry["name"]
    _require(_SAFE_NAME.fullmatch(name) is not None, f"model name {name!r}")
    _require(entry["role"] in ROLES, f"role of {name}")
    files = tuple(_file(file, name, wheels, hub) for file in entry["file"])
    _require(len({file.name for file in files}) == len(files) > 0, f"files of {name}")
    profiles = tuple(entry.get("profiles", ()))
    return Model(name, entry["role"], profiles, entry["licence"], entry["origin"], entry["summary"], files)


def _file(entry: Mapping[str, Any], model: str, wheels: Mapping[str, Wheel], hub: str) -> ModelFile:
    name = entry["name"]
    # The name becomes a path below the store: one plain component, so no source can write anywhere else.
    _require(_SAFE_NAME.fullmatch(name) is not None, f"file name {name!r} of {model}")
    _require(entry["size"] > 0, f"size of {model}/{name}")
    _require(_SHA256.fullmatch(entry["sha256"]) is not None, f"sha256 of {model}/{name}")
    sources = tuple(_source(source, f"{model}/{name}", wheels, hub) for source in entry["sources"])
    _require(len(sources) > 0, f"sources of {model}/{name}")
    for source in sources:
        if isinstance(source, WheelSource):
            total = sum(part.size for part in source.parts)
            _require(total == entry["size"], f"parts of {model}/{name} (they add up to {total} bytes)")
    return ModelFile(name, entry["size"], entry["sha256"], sources)


def _source(entry: Mapping[str, Any], file: str, wheels: Mapping[str, Wheel], hub: str) -> Source:
    match entry:
        case {"wheels": parts}:
            _require(len(parts) > 0, f"wheels of {file}")
            return WheelSource(tuple(WheelPart(wheels[part["package"]], part["path"], part["size"]) for part in parts))
        case {"hub": {"repo": repo, "revision": revision, "path": path}}:
            return WebSource(f"{hub.rstrip('/')}/{repo}/resolve/{revision}/{path}")
        case {"url": str(url)}:
            _require(url.startswith("https://"), f"url of {file}")
            return WebSource(url)
        case _:
            raise ModelError(f"the model manifest has a source of an unknown kind for {file}: {sorted(entry)}.")


def _check_profiles(models: tuple[Model, ...]) -> None:
    for profile in {profile for model in models for profile in model.profiles}:
        roles = sorted(model.role for model in models if profile in model.profiles)
        _require(roles == sorted(ROLES), f"profile {profile} (its roles are {', '.join(roles)})")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ModelError(f"the model manifest has a wrong {what}.")
