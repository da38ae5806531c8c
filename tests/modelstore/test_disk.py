from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest

from tests.modelstore.serving import sha
from voice_agent.errors import ModelError
from voice_agent.modelstore import disk
from voice_agent.modelstore.disk import FileStatus, check_room, checked_state, disk_error, finish
from voice_agent.modelstore.manifest import Model, ModelFile, WebSource

DATA = b"the weights"
FILE = ModelFile("m.bin", len(DATA), sha(DATA), (WebSource("https://example.org/m.bin"),))
MODEL = Model("tiny", "vad", (), "MIT", "nowhere", "a test", (FILE,))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "m.bin").write_bytes(DATA)
    return tmp_path / "tiny" / "m.bin"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read in full, in order."""
    names: list[str] = []
    real = disk.sha256_of

    def noted(path: Path) -> str:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(disk, "sha256_of", noted)
    return names


def status(root: Path, *, rehash: bool = False) -> FileStatus:
    return checked_state(root, MODEL, FILE, rehash=rehash).status


def test_second_look_believes_the_record(tmp_path: Path, target: Path, hashed: list[str]) -> None:
    assert [status(tmp_path) for _ in range(3)] == [FileStatus.OK] * 3
    assert hashed == ["m.bin"]


def test_rehash_reads_the_file_whatever_is_recorded(tmp_path: Path, target: Path, hashed: list[str]) -> None:
    status(tmp_path)
    assert status(tmp_path, rehash=True) is FileStatus.OK
    assert hashed == ["m.bin", "m.bin"]


def test_changed_time_means_a_new_hash(tmp_path: Path, target: Path, hashed: list[str]) -> None:
    status(tmp_path)
    os.utime(target, ns=(1, 1))
    assert status(tmp_path) is FileStatus.OK
    assert hashed == ["m.bin", "m.bin"]


def test_flipped_bit_of_the_same_size_is_found_when_the_time_changed(tmp_path: Path, target: Path) -> None:
    status(tmp_path)
    target.write_bytes(b"thE weights")
    os.utime(target, ns=(1, 1))
    assert status(tmp_path) is FileStatus.CORRUPT


def test_flipped_bit_behind_the_records_back_is_found_by_rehash_only(tmp_path: Path, target: Path) -> None:
    status(tmp_path)
    stat = target.stat()
    target.write_bytes(b"thE weights")
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert status(tmp_path) is FileStatus.OK
    assert status(tmp_path, rehash=True) is FileStatus.CORRUPT


def test_record_of_another_checksum_is_not_believed(tmp_path: Path, target: Path) -> None:
    target.write_bytes(b"thE weights")
    stat = target.stat()
    entry = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": sha(b"thE weights")}
    (target.parent / ".verified").write_text(json.dumps({"m.bin": entry}))
    assert status(tmp_path) is FileStatus.CORRUPT


@pytest.mark.parametrize("content", ["", "{", "[]", '{"m.bin": 3}', '{"m.bin": {"size": 11}}'])
def test_broken_record_only_costs_a_hash(tmp_path: Path, target: Path, hashed: list[str], content: str) -> None:
    (target.parent / ".verified").write_text(content)
    assert status(tmp_path) is FileStatus.OK
    assert hashed == ["m.bin"]
    assert status(tmp_path) is FileStatus.OK
    assert hashed == ["m.bin"]


def test_missing_and_truncated_are_told_without_reading(tmp_path: Path, target: Path, hashed: list[str]) -> None:
    target.write_bytes(DATA[:4])
    state = checked_state(tmp_path, MODEL, FILE, rehash=True)
    assert (state.status, str(state)) == (FileStatus.WRONG_SIZE, "tiny/m.bin is truncated (4 of 11 bytes)")
    target.unlink()
    assert status(tmp_path, rehash=True) is FileStatus.MISSING
    target.mkdir()
    assert status(tmp_path, rehash=True) is FileStatus.MISSING
    assert hashed == []


def test_finish_replaces_the_old_file_and_records_the_hash(tmp_path: Path, target: Path, hashed: list[str]) -> None:
    target.write_bytes(b"old")
    partial = target.with_name(".m.bin.partial")
    partial.write_bytes(DATA)
    finish(partial, target, FILE.sha256)
    assert target.read_bytes() == DATA
    assert not partial.exists()
    assert status(tmp_path) is FileStatus.OK
    assert hashed == []


def test_store_that_cannot_be_written_is_still_verified(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    assert status(tmp_path) is FileStatus.OK
    assert [path.name for path in target.parent.iterdir()] == ["m.bin"]


def test_room_is_checked_on_the_disk_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    check_room(tmp_path / "not" / "yet", 1)
    with pytest.raises(ModelError, match=r"not enough room .* 1000000000000\.0 MB .* VOICE_AGENT_MODEL_DIR"):
        check_room(tmp_path / "not" / "yet", 10**18)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "is full.*VOICE_AGENT_MODEL_DIR.*kept and continued"),
        (errno.EDQUOT, "is full"),
        (errno.EACCES, "no permission to write .*VOICE_AGENT_MODEL_DIR"),
        (errno.EROFS, "no permission to write"),
        (errno.EIO, "Input/output error.*Check the disk"),
    ],
)
def test_disk_trouble_comes_with_the_next_step(tmp_path: Path, number: int, words: str) -> None:
    error = disk_error(OSError(number, os.strerror(number), str(tmp_path / "x")), tmp_path)
    assert re.search(words, str(error))
