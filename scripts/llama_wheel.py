"""Compiles llama-cpp-python once per user and machine, and keeps the wheel.

    python scripts/llama_wheel.py find             print the kept wheel (nothing if the venv needs none); exit 1 if none
    python scripts/llama_wheel.py build            compile, keep and print it
    python scripts/llama_wheel.py build --afresh   the same, ignoring kept wheels

The package index has only its source, and compiling takes minutes. Wheels lie in $XDG_CACHE_HOME/voice-agent/wheels,
in a folder named after what the machine code depends on: the compiler is told to use whatever this processor has
(GGML_NATIVE), so a wheel from a home directory shared with a newer machine would die of an illegal instruction here.
The wheel itself is independent of the Python version (tag py3-none), so the folder is, too. pip's own cache of wheels
is never asked: it does not know which processor a wheel was compiled for.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = "llama-cpp-python"
HEARTBEAT = 10.0
"""Seconds between signs of life while the compiler runs."""

SCRATCH = ".build-"

WITHOUT_TILES = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
"""For processors with AMX. GCC before 13 tells its optimiser that loading a tile configuration reads 8 bytes of the 64
(_tile_loadconfig in amxtileintrin.h), so the rest is never written, and llama.cpp dies of a general protection fault at
its first matrix product. Without tiles it multiplies by AVX-512."""

_INSTRUCTION_SETS = re.compile(r"sse|avx|fma|f16c|bmi|amx|asimd|sve|neon|dot|i8mm|bf16")


def requirement() -> str:
    """The requirement as pyproject.toml has it, such as `llama-cpp-python>=0.3.30,<0.4`."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return next(str(line) for line in project["dependencies"] if line.startswith(PACKAGE))


def satisfies(found: str, wanted: str) -> bool:
    """Whether version `found` meets a requirement made of >=, < and == with plain numbers."""

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", text))

    tests = {">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "==": lambda a, b: a == b}
    conditions = re.findall(r"(>=|<|==)([\d.]+)", wanted)
    return all(tests[operator](numbers(found), numbers(limit)) for operator, limit in conditions)


def cpu_features(cpuinfo: str) -> list[str]:
    """The instruction sets in a /proc/cpuinfo that a compiler may use; not kernel flags, which change with updates."""
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return sorted({flag for flag in (line[1].split() if line else []) if _INSTRUCTION_SETS.search(flag)})


def compiler_flags(environ: Mapping[str, str], cpuinfo: str) -> dict[str, str]:
    """CFLAGS and CXXFLAGS for this processor, ahead of the user's own, which therefore win."""
    if "amx_tile" not in cpu_features(cpuinfo):
        return {}
    return {name: f"{WITHOUT_TILES} {environ.get(name, '')}".strip() for name in ("CFLAGS", "CXXFLAGS")}


def wheel_dir(environ: Mapping[str, str], cpuinfo: str) -> Path:
    """Where wheels for this machine, C library and build options lie."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ["HOME"]) / ".cache")
    flags = compiler_flags(environ, cpuinfo)
    facts = [*cpu_features(cpuinfo), " ".join(platform.libc_ver()), environ.get("CMAKE_ARGS", ""), *flags.values()]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return cache / "voice-agent" / "wheels" / f"{platform.system().lower()}-{platform.machine()}-{digest}"


def kept_wheel(folder: Path, wanted: str) -> Path | None:
    """The newest wheel in `folder` that meets the requirement."""
    prefix = PACKAGE.replace("-", "_") + "-"
    wheels = [wheel for wheel in folder.glob(f"{prefix}*.whl") if satisfies(wheel.name.split("-")[1], wanted)]
    return max(wheels, key=lambda wheel: wheel.stat().st_mtime, default=None)


def build_jobs(cores: int, memory: int) -> int:
    """Compilers at once: one per core, and at least 1 GiB of memory (bytes) for each."""
    return max(1, min(cores, memory >> 30))


def progress(log: str) -> str:
    """The last `[12/210]` that the build tool printed, or nothing."""
    steps = re.findall(r"\[(\d+)/(\d+)\]", log)
    return f", step {steps[-1][0]} of {steps[-1][1]}" if steps else ""


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that two checkouts do not compile the same thing side by side."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another set-up is compiling {PACKAGE}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in folder.glob(f"{SCRATCH}*"):
            shutil.rmtree(left_over)
        yield


def say(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)


def build(folder: Path, wanted: str, flags: Mapping[str, str]) -> Path | None:
    """Compile into a scratch folder and move the wheel into place, so that a kept wheel is always whole."""
    jobs = build_jobs(os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    log = folder / "build.log"
    say(f"compiling {PACKAGE} with {jobs} jobs: 3 minutes or so on two cores, once per user and machine")
    say(f"kept in {folder}; compiler output in {log.name} there")
    with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH) as scratch:
        command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-cache-dir", "--wheel-dir", scratch]
        command.append(wanted)
        environment = {"CMAKE_BUILD_PARALLEL_LEVEL": str(jobs), **os.environ, **flags}
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
            )
            code = wait_with_heartbeat(process, log)
        wheels = list(Path(scratch).glob("*.whl"))
        if code != 0 or not wheels:
            print("".join(log.read_text(errors="replace").splitlines(keepends=True)[-30:]), file=sys.stderr)
            say(f"compiling {PACKAGE} failed: the end of {log} is above. Run make again once that is put right.")
            return None
        return wheels[0].replace(folder / wheels[0].name)


def wait_with_heartbeat(process: subprocess.Popen[bytes], log: Path) -> int:
    """Wait for the build, with a line every few seconds; an interrupt ends it too."""
    begun = time.monotonic()
    try:
        while True:
            try:
                return process.wait(timeout=HEARTBEAT)
            except subprocess.TimeoutExpired:
                seconds = int(time.monotonic() - begun)
                done = progress(log.read_text(errors="replace"))
                say(f"compiling {PACKAGE}: {seconds // 60}:{seconds % 60:02}{done}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def installed(wanted: str) -> bool:
    try:
        return satisfies(version(PACKAGE), wanted)
    except PackageNotFoundError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description="Find or compile the llama-cpp-python wheel.")
    parser.add_argument("action", choices=["find", "build"])
    parser.add_argument("--afresh", action="store_true", help="compile even if there is a wheel")
    args = parser.parse_args()
    # A plain kill must end the compilers as well, which leaving by an exception does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = requirement()
    if args.action == "find" and installed(wanted):
        return 0
    proc = Path("/proc/cpuinfo")
    cpuinfo = proc.read_text() if proc.exists() else platform.processor()
    folder = wheel_dir(os.environ, cpuinfo)
    wheel = kept_wheel(folder, wanted)
    if args.action == "build":
        with only_one(folder):
            wheel = None if args.afresh else kept_wheel(folder, wanted)
            wheel = wheel or build(folder, wanted, compiler_flags(os.environ, cpuinfo))
    if wheel is None:
        return 1
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
