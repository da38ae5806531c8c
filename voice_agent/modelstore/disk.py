"""Files of the store: hashing, the record of what was verified, room on the disk, and errors a user can act on."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from voice_agent.errors import ModelError
from voice_agent.modelstore.manifest import Model, ModelFile

BLOCK = 1 << 20
"""Bytes read or written at a time."""

_SIDECAR = ".verified"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class FileStatus(Enum):
    OK = "ok"
    MISSING = "missing"
    WRONG_SIZE = "wrong-size"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class FileState:
    model: str
    file: str
    path: Path
    status: FileStatus
    size: int
    """Bytes on disk; 0 when missing."""
    expected_size: int

    def __str__(self) -> str:
        match self.status:
            case FileStatus.OK:
                return f"{self.model}/{self.file} is whole"
            case FileStatus.MISSING:
                return f"{self.model}/{self.file} is missing"
            case FileStatus.WRONG_SIZE if self.size < self.expected_size:
                return f"{self.model}/{self.file} is truncated ({self.size:,} of {self.expected_size:,} bytes)"
            case FileStatus.WRONG_SIZE:
                return f"{self.model}/{self.file} has {self.size:,} instead of {self.expected_size:,} bytes"
            case FileStatus.CORRUPT:
                return f"{self.model}/{self.file} is damaged (wrong checksum)"


def mb(size: int) -> str:
    """Megabytes (10^6 bytes) with one digit."""
    return f"{size / 1e6:.1f} MB"


def size_of(path: Path) -> int:
    """Bytes of a file, 0 when it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def quick_state(root: Path, model: Model, file: ModelFile) -> FileState:
    """Whether a file is there with the right size; its content is not read."""
    path = root / model.name / file.name
    size = size_of(path)
    present = FileStatus.OK if size == file.size else FileStatus.WRONG_SIZE
    status = present if path.is_file() else FileStatus.MISSING
    return FileState(model.name, file.name, path, status, size, file.size)


def checked_state(root: Path, model: Model, file: ModelFile, *, rehash: bool) -> FileState:
    """Whether a file is there with the right content.

    A hash that was taken before is believed as long as size and modification time are the same; `rehash` reads the
    file in any case. Either way the outcome of a fresh hash is recorded for the next time.
    """
    state = quick_state(root, model, file)
    if state.status is not FileStatus.OK:
        return state
    if not rehash and _recorded(state.path) == file.sha256:
        return state
    before = _identity(state.path)
    digest = sha256_of(state.path)
    if digest == file.sha256:
        _record(state.path, before, digest)
        return state
    return FileState(model.name, file.name, state.path, FileStatus.CORRUPT, state.size, file.size)


def finish(partial: Path, target: Path, digest: str) -> None:
    """Put a verified file in its place, so that a crash leaves either the old file or the new one."""
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    partial.replace(target)
    _sync_folder(target.parent)
    _record(target, _identity(target), digest)


def check_room(folder: Path, needed: int) -> None:
    """Raise ModelError when the disk of `folder` has less than `needed` bytes free."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise ModelError(
            f"not enough room for the models: {folder} needs {mb(needed)} and has {mb(free)} free. "
            "Free some space, or set VOICE_AGENT_MODEL_DIR to a folder on another disk."
        )


def disk_error(error: OSError, root: Path) -> ModelError:
    """The same trouble in words a user can act on."""
    where = error.filename or root
    if error.errno in _NO_ROOM:
        return ModelError(
            f"the disk of {root} is full. Free some space, or set VOICE_AGENT_MODEL_DIR to a folder on another disk; "
            "what has arrived is kept and continued."
        )
    if error.errno in _NOT_ALLOWED:
        return ModelError(
            f"no permission to write {where}. Make it writable for this user, or set VOICE_AGENT_MODEL_DIR to a "
            "folder that is."
        )
    reason = error.strerror or error
    return ModelError(f"{where} cannot be written ({reason}). Check the disk, or set VOICE_AGENT_MODEL_DIR.")


def _identity(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _read_sidecar(folder: Path) -> dict[str, dict[str, object]]:
    try:
        data = json.loads((folder / _SIDECAR).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # not there, or not ours: the files are hashed again
    return data if isinstance(data, dict) else {}


def _recorded(path: Path) -> str | None:
    """The checksum recorded for exactly this size and modification time."""
    entry = _read_sidecar(path.parent).get(path.name)
    if not isinstance(entry, Mapping) or (entry.get("size"), entry.get("mtime_ns")) != _identity(path):
        return None
    digest = entry.get("sha256")
    return digest if isinstance(digest, str) else None


def _record(path: Path, identity: tuple[int, int], digest: str) -> None:
    sidecar = path.parent / _SIDECAR
    data = _read_sidecar(path.parent)
    data[path.name] = {"size": identity[0], "mtime_ns": identity[1], "sha256": digest}
    temporary = sidecar.with_name(f"{_SIDECAR}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        temporary.replace(sidecar)
    except OSError:
        # A store that belongs to somebody else is fine to use: it only takes a hash more each time.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
