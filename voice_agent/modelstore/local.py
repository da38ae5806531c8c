"""Models of the user's own, given by path: is it the kind of file the engine reads, and is it all there?

The engines' own messages for a truncated or foreign file are hard to read and some come late, so the outside of the
file is looked at first. None of these checks reads the weights.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import IO

from voice_agent.errors import ModelError
from voice_agent.modelstore.disk import size_of

_GGUF_VERSIONS = (2, 3)
_GGUF_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a metadata value by type (ggml's gguf.md); 8 is a string, 9 an array."""
_GGUF_STRING, _GGUF_ARRAY = 8, 9
_ONNX_GRAPH = 7
"""Field number of the graph in ONNX's ModelProto."""


def check_whisper(folder: Path) -> Path:
    """A CTranslate2 Whisper model: a folder as `ct2-transformers-converter` writes it. Raises ModelError."""
    if not folder.is_dir():
        raise ModelError(f"speech recognition: {folder} is not a folder. A CTranslate2 Whisper model is one.")
    # Without tokenizer.json the engine would try to download one while a call waits.
    for name in ("model.bin", "config.json", "tokenizer.json"):
        if not size_of(folder / name):
            raise ModelError(
                f"speech recognition: {folder} has no {name}, or an empty one. A CTranslate2 Whisper model has "
                "model.bin, config.json and tokenizer.json (convert with "
                "`ct2-transformers-converter --copy_files tokenizer.json`)."
            )
    with (folder / "model.bin").open("rb") as file:
        head = file.read(64)
    if b"WhisperSpec" not in head:
        raise ModelError(f"speech recognition: {folder / 'model.bin'} is not a CTranslate2 Whisper model.")
    return folder


def check_gguf(path: Path) -> Path:
    """A GGUF file whose tensors all lie inside it. Raises ModelError."""
    if not path.is_file():
        raise ModelError(f"language model: there is no file {path}.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"language model: {path} is not a GGUF file (it does not begin with GGUF).")
        try:
            complete = _gguf_is_complete(file, path.stat().st_size)
        except (struct.error, OverflowError, UnicodeDecodeError) as error:
            raise ModelError(f"language model: {path} is truncated or damaged. Copy or download it again.") from error
    if not complete:
        raise ModelError(f"language model: {path} is truncated: it ends before its tensors do. Download it again.")
    return path


def check_piper(path: Path) -> Path:
    """A Piper voice: NAME.onnx with NAME.onnx.json beside it. Raises ModelError."""
    if not path.is_file():
        raise ModelError(f"speech synthesis: there is no file {path}.")
    config = path.with_name(path.name + ".json")
    if not config.is_file():
        raise ModelError(f"speech synthesis: {config} is missing. A Piper voice is two files, .onnx and .onnx.json.")
    if not _is_whole_onnx(path):
        raise ModelError(f"speech synthesis: {path} is not an ONNX file, or it is truncated. Download it again.")
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        usable = int(settings["audio"]["sample_rate"]) > 0 and len(settings["phoneme_id_map"]) > 0
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"speech synthesis: {config} does not describe a Piper voice ({error!r}).") from error
    if not usable:
        raise ModelError(f"speech synthesis: {config} names no sample rate or no phonemes.")
    return path


def _gguf_is_complete(file: IO[bytes], size: int) -> bool:
    """Walk the header (version, counts, metadata, tensor table): does the last tensor begin inside the file?

    struct.error where the file ends too early, OverflowError where a length cannot be right.
    """
    version, tensors, entries = struct.unpack("<IQQ", file.read(20))
    if version not in _GGUF_VERSIONS or not tensors:
        raise OverflowError("not a version this program knows, or no tensors")
    alignment = 32
    for _ in range(entries):
        key = _gguf_string(file, size)
        (kind,) = struct.unpack("<I", file.read(4))
        value = _gguf_value(file, kind, size)
        if key == b"general.alignment":
            alignment = int.from_bytes(value, "little") or alignment
    last = 0
    for _ in range(tensors):
        _gguf_string(file, size)
        (dimensions,) = struct.unpack("<I", file.read(4))
        if dimensions > 8:
            raise OverflowError("too many dimensions")
        *_, offset = struct.unpack(f"<{dimensions}QIQ", file.read(8 * dimensions + 12))
        last = max(last, offset)
    data = -(-file.tell() // alignment) * alignment
    return data + last < size


def _gguf_string(file: IO[bytes], size: int) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > size:
        raise OverflowError("a string longer than the file")
    text = file.read(length)
    if len(text) < length:
        raise struct.error("the file ends inside a string")
    return text


def _gguf_value(file: IO[bytes], kind: int, size: int) -> bytes:
    """Read one metadata value and return its bytes; an array is skipped."""
    if kind == _GGUF_STRING:
        return _gguf_string(file, size)
    if kind != _GGUF_ARRAY:
        if kind not in _GGUF_FIXED:
            raise OverflowError("an unknown type of metadata")
        return file.read(_GGUF_FIXED[kind])
    element, count = struct.unpack("<IQ", file.read(12))
    if count > size or element == _GGUF_ARRAY:
        raise OverflowError("an array longer than the file, or nested")
    if element == _GGUF_STRING:
        for _ in range(count):
            _gguf_string(file, size)
    else:
        file.seek(count * _GGUF_FIXED.get(element, 1), os.SEEK_CUR)
    return b""


def _is_whole_onnx(path: Path) -> bool:
    """An ONNX file is one protobuf message: its top-level fields must fill the file exactly, one being the graph."""
    size, graph = path.stat().st_size, False
    with path.open("rb") as file:
        while file.tell() < size:
            tag = _varint(file)
            number, kind = (tag or 0) >> 3, (tag or 0) & 7
            if not number:
                return False
            if kind == 0:
                length: int | None = 0 if _varint(file) is not None else None
            else:
                length = {1: 8, 5: 4}.get(kind) if kind != 2 else _varint(file)
            if length is None or file.tell() + length > size:
                return False
            file.seek(length, os.SEEK_CUR)
            graph = graph or number == _ONNX_GRAPH
    return graph


def _varint(file: IO[bytes]) -> int | None:
    """A protobuf variable-length integer; None when there is none here."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    return None
