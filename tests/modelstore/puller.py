"""A pull in a process of its own: `python -m tests.modelstore.puller ROOT MODE`.

MODE `slow`: says `fetching` on stdout when it holds the lock and goes on when a line arrives on stdin.
MODE `second`: must find everything there. Every line of progress that is not a download goes to stdout.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.modelstore.serving import FakeIndex, NoWeb
from tests.modelstore.test_store import WHEEL_A, WHEEL_B, WHEEL_C, manifest
from voice_agent.modelstore import ModelStore, Phase, Progress
from voice_agent.modelstore.manifest import Wheel


def main(root: Path, mode: str) -> None:
    index = FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C) if mode == "slow" else FakeIndex()

    def hold(wheel: Wheel) -> None:
        if wheel.package == "part-b":
            print("fetching", flush=True)
            sys.stdin.readline()

    def show(progress: Progress) -> None:
        if progress.phase is Phase.WAIT:
            print(f"wait {progress.message}", flush=True)

    if mode == "slow":
        index.before = hold
    ModelStore(root, manifest(), index=index, web=NoWeb()).ensure(["big"], show)
    print(f"done {len(index.asked)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
