"""The store: MODEL/FILE below one folder outside the checkout, shared by every clone of this program on the machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from voice_agent.errors import ModelError
from voice_agent.modelstore.disk import (
    FileState,
    FileStatus,
    check_room,
    checked_state,
    disk_error,
    mb,
    quick_state,
)
from voice_agent.modelstore.fetch import Fetcher, Gap, UrlFetcher, WheelFetcher
from voice_agent.modelstore.local import check_gguf, check_piper, check_whisper
from voice_agent.modelstore.lock import store_lock
from voice_agent.modelstore.manifest import Manifest, Model, ModelFile
from voice_agent.modelstore.progress import Phase, Progress, Report, no_report
from voice_agent.plugins import is_plugin
from voice_agent.settings import ModelSettings

SCRIPTED = "scripted"
"""The value of the setting `llm` that needs no model."""

_CHECKS = {"stt": check_whisper, "llm": check_gguf, "tts": check_piper}
_KINDS = {
    "stt": "a CTranslate2 Whisper folder",
    "llm": "a .gguf file, or `scripted`",
    "tts": "a Piper .onnx file",
}


@dataclass(frozen=True, slots=True)
class ModelPaths:
    """What the engines load."""

    vad: Path
    end_of_turn: Path
    stt: Path | None
    """A CTranslate2 folder; None: a plugin recognises."""
    llm: Path | None
    """A GGUF file; None: the scripted engine or a plugin answers."""
    tts: Path | None
    """A Piper voice; its .onnx.json is beside it. None: a plugin speaks."""


def model_root(settings: ModelSettings) -> Path:
    """Where weights live: the setting, or $XDG_CACHE_HOME/voice-agent/models, or ~/.cache/voice-agent/models."""
    if settings.model_dir:
        return Path(settings.model_dir).expanduser().absolute()
    # The XDG specification says to ignore a relative path there.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "voice-agent" / "models"


class ModelStore:
    """Model files below `root`, as `manifest` describes them."""

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        *,
        index: WheelFetcher | None = None,
        web: UrlFetcher | None = None,
    ) -> None:
        self.root = root
        self.manifest = manifest
        self._index = index
        self._web = web

    def profile_models(self, profile: str) -> dict[str, str]:
        """The model name of each role. Raises ModelError when there is no such profile."""
        return self.manifest.profile_models(profile)

    def wanted(self, settings: ModelSettings) -> list[str]:
        """The models of the manifest that these settings need; paths, plugins and the scripted engine need none."""
        return [choice for choice in self._choices(settings).values() if isinstance(choice, str)]

    def ensure(self, names: Sequence[str], progress: Report = no_report) -> None:
        """Have every file of these models there and whole, fetching what is not.

        Blocks; waits for another process that is filling the same store. Raises ModelError with the next step.
        Stopped at any moment (also by SIGKILL), what has arrived is kept and the next call continues.
        """
        models = [self.manifest.model(name) for name in dict.fromkeys(names)]
        try:
            for model in models:
                progress(Progress(Phase.CHECK, model.name, f"checking {model.name} ({mb(model.size)})"))
                # A whole store needs neither the lock nor permission to write.
                if not self._broken(model):
                    progress(Progress(Phase.READY, model.name))
            if any(self._broken(model) for model in models):
                self._fill(models, progress)
        except OSError as error:
            raise disk_error(error, self.root) from error

    def file(self, name: str, filename: str | None = None) -> Path:
        """The path of a file of a model (its weights by default). Raises ModelError when it is not there, or not all
        of it; the content is not read."""
        model = self.manifest.model(name)
        self._require([model])
        wanted = filename or model.main_file.name
        if wanted not in {file.name for file in model.files}:
            raise ModelError(f"{name} has no file {wanted}: it has {', '.join(file.name for file in model.files)}.")
        return self.root / name / wanted

    def present(self, name: str) -> bool:
        """Whether all files are there with the right sizes; their content is not read."""
        model = self.manifest.model(name)
        return all(quick_state(self.root, model, file).status is FileStatus.OK for file in model.files)

    def has_any(self, name: str) -> bool:
        """Whether any file of the model is there, whole or not."""
        return any((self.root / name / file.name).exists() for file in self.manifest.model(name).files)

    def verify(self, names: Sequence[str]) -> list[FileState]:
        """Read every file of these models and compare its checksum, whatever was recorded before."""
        models = [self.manifest.model(name) for name in dict.fromkeys(names)]
        try:
            return [checked_state(self.root, model, file, rehash=True) for model in models for file in model.files]
        except OSError as error:
            raise ModelError(f"{error.filename or self.root} cannot be read: {error.strerror}.") from error

    def resolve(self, settings: ModelSettings, without: Collection[str] = ()) -> ModelPaths:
        """The files these settings ask for, each there and of the right kind. Raises ModelError naming what to do.

        `without` names settings (`stt`, `llm`, `tts`) whose engine comes from elsewhere and needs no file.
        """
        choices = {role: choice for role, choice in self._choices(settings).items() if role not in without}
        self._require([self.manifest.model(choice) for choice in choices.values() if isinstance(choice, str)])
        paths = {}
        for role, choice in choices.items():
            if isinstance(choice, Path):
                paths[role] = _CHECKS[role](choice)
            elif choice is not None:
                path = self.root / choice / self.manifest.model(choice).main_file.name
                paths[role] = path.parent if role == "stt" else path
        return ModelPaths(paths["vad"], paths["end_of_turn"], paths.get("stt"), paths.get("llm"), paths.get("tts"))

    def _choices(self, settings: ModelSettings) -> dict[str, str | Path | None]:
        """For each role a model's name, the path of the user's own, or None where no file is needed."""
        choices: dict[str, str | Path | None] = dict(self.profile_models(settings.profile))
        for role, value in (("stt", settings.stt), ("llm", settings.llm), ("tts", settings.tts)):
            known = any(model.name == value for model in self.manifest.models)
            if (role == "llm" and value == SCRIPTED) or (not known and is_plugin(value)):
                choices[role] = None
            elif value:
                choices[role] = self._choice(role, value)
        return choices

    def _choice(self, role: str, value: str) -> str | Path:
        """A name of the manifest wins; anything that looks like a path, or exists, is one."""
        known = {model.name: model.role for model in self.manifest.models}
        if value in known:
            if known[value] != role:
                raise ModelError(f"the setting `{role}` names {value}, which is a model for `{known[value]}`.")
            return value
        path = Path(value).expanduser()
        if os.sep in value or path.suffix in (".gguf", ".onnx") or path.exists():
            return path.absolute()
        try:
            return self.manifest.model(value).name
        except ModelError as error:
            own = f"A model of your own is {_KINDS[role]}, or a plugin: MODULE:FACTORY."
            raise ModelError(f"the setting `{role}`: {error} {own}") from None

    def _require(self, models: Sequence[Model]) -> None:
        """Raise one ModelError for all files that are missing or not all there."""
        states = [quick_state(self.root, model, file) for model in models for file in model.files]
        wrong = [state for state in states if state.status is not FileStatus.OK]
        if wrong:
            names = " ".join(dict.fromkeys(state.model for state in wrong))
            listed = "; ".join(str(state) for state in wrong)
            raise ModelError(f"{listed} in {self.root}. Run `voice-agent models pull {names}`.")

    def _fill(self, models: Sequence[Model], progress: Report) -> None:
        # Imported here: most starts of the program find everything there and need no client.
        from voice_agent.modelstore.package_index import PackageIndex
        from voice_agent.modelstore.web import WebFetcher

        index, web = self._index or PackageIndex(), self._web or WebFetcher()
        self.root.mkdir(parents=True, exist_ok=True)
        with store_lock(self.root, lambda sentence: progress(Progress(Phase.WAIT, message=sentence))):
            # Looked at again, because another process may have filled the store while this one waited.
            gaps: list[Gap] = []
            for model in models:
                for file, state in self._broken(model):
                    gaps.append((model, file))
                    if state.status is not FileStatus.MISSING:
                        progress(Progress(Phase.NOTE, model.name, f"{state}: fetching it again."))
            fetcher = Fetcher(self.root, gaps, index=index, web=web, report=progress)
            check_room(self.root, fetcher.room)
            fetcher.run()

    def _broken(self, model: Model) -> list[tuple[ModelFile, FileState]]:
        """The files of a model that are missing or not whole."""
        states = [(file, checked_state(self.root, model, file, rehash=False)) for file in model.files]
        return [(file, state) for file, state in states if state.status is not FileStatus.OK]
