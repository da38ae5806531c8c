from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.modelstore.serving import FakeIndex
from tests.modelstore.test_store import WHEEL_B, WHEEL_C, Pull
from voice_agent.errors import ModelError
from voice_agent.modelstore.lock import store_lock

CHECKOUT = Path(__file__).parents[2]


class Process:
    """A pull in another process, spoken to over its pipes."""

    def __init__(self, root: Path, mode: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.modelstore.puller", str(root), mode],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def test_second_process_waits_says_so_and_finds_the_files(tmp_path: Path) -> None:
    with Process(tmp_path, "slow") as first:
        assert first.line() == "fetching"
        with Process(tmp_path, "second") as second:
            waits = second.line()
            assert waits.startswith(f"wait another pull (process {first.pid}) is filling {tmp_path}")
            first.go_on()
            assert first.line() == "done 3"
            assert second.line() == "done 0"


def test_lock_of_a_killed_process_is_free_and_its_work_is_continued(tmp_path: Path) -> None:
    with Process(tmp_path, "slow") as first:
        assert first.line() == "fetching"
        first.kill()
    again = Pull(tmp_path, FakeIndex(WHEEL_B, WHEEL_C))
    again.run()
    again.assert_whole()
    assert again.index.asked == ["part-b", "part-c"]


def test_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    waits: list[str] = []
    for _ in range(2):
        with pytest.raises(ValueError, match="inside"), store_lock(tmp_path, waits.append):
            raise ValueError("inside")
    assert waits == []


def test_file_system_without_locks_is_an_error_not_a_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ModelError, match="No locks available"):
        Pull(tmp_path, FakeIndex()).run()
