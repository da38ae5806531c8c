"""Archives from a Python package index, fetched by pip.

pip, and not a client of our own, because the machine's pip configuration then holds here too: indexes, mirrors and
local folders of wheels, credentials and keyrings, proxies, certificates, constraints. It is asked for one pinned
version with one pinned checksum, without dependencies, into our own folder; nothing is installed or run.

pip has no figures for machines in all its versions, so progress is read off the growing file: pip is given our folder
for its temporary files, which also keeps it off a small /tmp. A connection that breaks is continued by pip itself
(25.1 and later); an archive that is complete stays on the shelf until it has been unpacked, so that a pull that was
stopped starts again at the archive it was at.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from voice_agent.modelstore.disk import sha256_of, size_of
from voice_agent.modelstore.manifest import Wheel
from voice_agent.modelstore.progress import SourceFailed, WrongContent

_ATTEMPTS = 3
"""Times pip is started for one archive when connections break."""
RESUMING_PIP = (25, 1)
"""The first pip that continues a broken download and tells one from wrong bytes."""
_POLL = 0.2
"""Seconds between two looks at the growing file."""

_ARGUMENTS = (
    "download",
    "--no-deps",
    "--only-binary=:all:",  # a source package would be built, which runs its code
    "--ignore-requires-python",  # it is a box of data: which Python could import it does not matter
    "--no-cache-dir",  # the store is the cache
    "--progress-bar=off",
    "--no-input",
    "--disable-pip-version-check",
)

_BROKE = "the connection broke"
_REASONS = (
    (r"DO NOT MATCH THE HASHES", "the index has another archive under that version (wrong checksum)"),
    (r"No module named pip", f"this Python has no pip: run `{sys.executable} -m ensurepip`"),
    (
        r"NewConnectionError|NameResolutionError|name resolution|Max retries exceeded|ConnectTimeout|ProxyError"
        r"|Connection refused|Network is unreachable|Failed to connect|[Cc]onnection (to|timed out)|ConnectionFailed",
        "no connection to the package index",
    ),
    (r"IncompleteRead|ProtocolError|[Rr]ead timed out|ConnectionReset|incomplete-download|not enough bytes", _BROKE),
    (r"No matching distribution|Could not find a version", "the package index does not have it (or does not answer)"),
)


class PackageIndex:
    """Fetches pinned archives with the pip of this Python."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(os.environ if environment is None else environment)

    def fetch(self, wheel: Wheel, target: Path, work: Path, report: Callable[[int], None]) -> None:
        """Put the archive at `target`. `work` is an existing folder for pip's files; it is left empty.

        `report` is told the bytes that have arrived. Raises SourceFailed when pip cannot get it, WrongContent when
        the index offers other bytes, OSError when the disk is full.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                found = self._download(wheel, work, report)
                if size_of(found) != wheel.size or sha256_of(found) != wheel.sha256:
                    raise WrongContent("the index has another archive under that version (wrong checksum)")
                found.replace(target)
                return
            except WrongContent:
                # Before 25.1 pip took what a broken connection had brought for the whole archive.
                if _pip_version() >= RESUMING_PIP or attempt == _ATTEMPTS:
                    raise
            except SourceFailed as error:
                if str(error) != _BROKE or attempt == _ATTEMPTS:
                    raise
            finally:
                _empty(work)

    def _download(self, wheel: Wheel, work: Path, report: Callable[[int], None]) -> Path:
        wanted, destination, log = work / "wanted.txt", work / "wheels", work / "pip.log"
        destination.mkdir()
        wanted.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="ascii")
        command = [sys.executable, "-m", "pip", *_ARGUMENTS, "--dest", str(destination), "--requirement", str(wanted)]
        environment = self._environment | {"TMPDIR": str(work), "PYTHONUTF8": "1"}
        environment.setdefault("PIP_RESUME_RETRIES", "10")  # older versions of pip do not know it and do not mind
        with log.open("wb") as output:
            # cwd: `-m` looks for modules there first, and the caller's folder may hold a pip.py of its own.
            process = subprocess.Popen(
                command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            try:
                while _wait(process, _POLL) is None:
                    report(_largest(work))
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if process.returncode:
            raise _failure(log.read_text(encoding="utf-8", errors="replace"))
        found = list(destination.glob("*.whl"))
        if len(found) != 1:
            raise SourceFailed(f"pip delivered {len(found)} archives instead of one")
        report(wheel.size)
        return found[0]


def _pip_version() -> tuple[int, ...]:
    """(25, 1) for 25.1.2; (0,) where it cannot be told."""
    try:
        return tuple(int(part) for part in re.findall(r"\d+", version("pip"))[:2])
    except PackageNotFoundError:
        return (0,)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _largest(folder: Path) -> int:
    """Size of the largest archive pip has there: the one it is writing, or the copy it is making of it."""
    sizes = [0]
    for path in folder.rglob("*.whl"):
        sizes.append(size_of(path))
    return max(sizes)


def _failure(log: str) -> Exception:
    """What went wrong, from what pip wrote. Its last ERROR line when nothing here knows better."""
    if "No space left on device" in log or "Disk quota exceeded" in log:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for pattern, reason in _REASONS:
        if re.search(pattern, log):
            return WrongContent(reason) if "checksum" in reason else SourceFailed(reason)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    return SourceFailed(f"pip failed: {(errors or lines or ['it said nothing'])[-1]}")


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
