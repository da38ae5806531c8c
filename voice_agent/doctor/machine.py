"""Checks of the machine: interpreter, packages, cores, memory, disk, open files. All block; none changes anything."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from voice_agent.doctor.check import Check, Verdict

OLDEST_PYTHON = (3, 11)
NATIVE = ("numpy", "av", "soxr", "onnxruntime", "ctranslate2", "tokenizers", "llama_cpp", "piper", "aiortc")
"""Modules with compiled parts: they can be installed and still not load, for instance on an older processor."""
IMPORT_SECONDS = 120
FILES_PER_CALL = 16
"""A generous estimate of sockets and files that one WebRTC call holds open."""
SPOKEN_TOKENS = 10.0
"""Tokens per second that speech uses up, with room: about 2.5 words a second, under two tokens each, doubled."""
BANDWIDTH_SECONDS = 0.8
BUFFER_BYTES = 64 * 1024 * 1024
"""Larger than a processor's cache, so that memory is measured."""


def python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Check("Python", Verdict.PROBLEM, version, "install Python 3.11 or newer and run `make setup` again")
    return Check("Python", Verdict.OK, f"{version} in {sys.prefix}", figures={"version": version})


def packages() -> Check:
    """Whether what is installed can be loaded; in a process of its own, for a broken library may end it."""
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    print('>', name, flush=True)\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except Exception as error:\n"
        "        print('!', name, ' '.join(f'{type(error).__name__}: {error}'.split()), flush=True)\n"
    )
    advice = "run `make setup` again (or pip install --force-reinstall the packages named)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *NATIVE],
            capture_output=True,
            text=True,
            timeout=IMPORT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Check("packages", Verdict.PROBLEM, f"they do not load within {IMPORT_SECONDS} s", advice)
    problems = [line[2:] for line in done.stdout.splitlines() if line.startswith("! ")]
    if done.returncode != 0:
        last = done.stdout.splitlines()[-1][2:] if done.stdout else "python"
        problems.append(f"{last} ends the process (status {done.returncode})")
    if problems:
        return Check("packages", Verdict.PROBLEM, "; ".join(problems), advice)
    return Check("packages", Verdict.OK, f"{len(NATIVE)} compiled packages load", figures=_versions())


def _versions() -> dict[str, str]:
    names = {"llama_cpp": "llama-cpp-python", "piper": "piper-tts"}
    found: dict[str, str] = {}
    for module in NATIVE:
        name = names.get(module, module)
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def cores() -> Check:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = _cgroup_cores()
    effective = min(usable, share) if share is not None else float(usable)
    figures = {"cores": usable, "cgroup_cores": share, "load_1min": round(os.getloadavg()[0], 2)}
    found = f"{usable} usable" + (f", of which a limit leaves {share:g}" if share is not None else "")
    if effective < 2:
        return Check(
            "cores", Verdict.WARNING, found, "one core listens and answers by turns: use --profile small", figures
        )
    if figures["load_1min"] and os.getloadavg()[0] > usable:
        found += f"; {os.getloadavg()[0]:.1f} programs want one just now"
        return Check("cores", Verdict.WARNING, found, "stop what else is running: answers wait for a core", figures)
    return Check("cores", Verdict.OK, found, figures=figures)


def _cgroup_cores() -> float | None:
    """Cores a container may use; None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def memory(model_bytes: int) -> Check:
    """Measured with the default models: 1.4 GB in use for 0.7 GB of files, so twice the files are wanted."""
    available = available_memory()
    needed = 2 * model_bytes
    if available is None:
        return Check("memory", Verdict.NOTE, "cannot be read on this system", figures={"needed_bytes": needed})
    figures = {"available_bytes": available, "needed_bytes": needed}
    found = f"{available / 1e9:.1f} GB free, about {needed / 1e9:.1f} GB needed"
    advice = "use --profile small, or end other programs"
    if available < model_bytes:
        return Check("memory", Verdict.PROBLEM, found, advice, figures)
    if available < needed:
        return Check("memory", Verdict.WARNING, found, advice, figures)
    return Check("memory", Verdict.OK, found, figures=figures)


def available_memory() -> int | None:
    """Bytes that programs can still have, a container's limit included."""
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # "max" is no number, and no limit
        return free
    return max(0, min(free, limit - used))


def disk(folder: Path, missing_bytes: int) -> Check:
    """Room where the models go: for what is not there yet, and for what is unpacked beside it on the way."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    figures = {"free_bytes": free, "missing_bytes": missing_bytes}
    found = f"{free / 1e9:.1f} GB free in {place}, {missing_bytes / 1e9:.1f} GB still to fetch"
    if free < 2 * missing_bytes:
        return Check("disk", Verdict.PROBLEM, found, "free some space, or set model_dir to another disk", figures)
    if free < 500_000_000:
        return Check("disk", Verdict.WARNING, found, "traces and updates need some room: free some space", figures)
    return Check("disk", Verdict.OK, found, figures=figures)


def open_files(calls: int) -> Check:
    """The agent raises its own limit to the hard one when it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    needed = 256 + FILES_PER_CALL * calls
    figures = {"soft": soft, "hard": None if unlimited else hard, "needed": needed}
    found = f"{'no limit' if unlimited else hard}, about {needed} needed for {calls} calls"
    if not unlimited and hard < needed:
        return Check(
            "open files",
            Verdict.PROBLEM,
            found,
            f"raise the hard limit (ulimit -Hn {needed}), or lower max_sessions",
            figures,
        )
    return Check("open files", Verdict.OK, found, figures=figures)


def bandwidth(model_bytes: int) -> Check:
    """Every token reads the whole language model once, so memory sets its pace on a CPU."""
    rate = measured_bandwidth(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    figures: dict[str, float | None] = {"bytes_per_second": round(rate), "most_tokens_per_second": None}
    found = f"{rate / 1e9:.1f} GB/s read by all cores, as busy as the machine is now"
    if not model_bytes:
        return Check("memory bandwidth", Verdict.OK, found, figures=figures)
    most = rate / model_bytes
    figures["most_tokens_per_second"] = round(most, 1)
    found += f": at most about {most:.0f} tokens/s from a model of {model_bytes / 1e9:.2f} GB"
    if most < SPOKEN_TOKENS:
        advice = "the model would write more slowly than it speaks: use --profile small, or a smaller --llm"
        return Check("memory bandwidth", Verdict.WARNING, found, advice, figures)
    return Check("memory bandwidth", Verdict.OK, found, figures=figures)


def measured_bandwidth(threads: int) -> float:
    """Bytes read per second by `threads` threads together, as reading a model's weights does, over about a second.

    The dot product of a long vector with itself: of numpy's loops the one that computes least per byte.
    """
    vectors = [np.ones(BUFFER_BYTES // 4, np.float32) for _ in range(threads)]
    read = [0] * threads
    end = time.perf_counter() + BANDWIDTH_SECONDS

    def work(number: int) -> None:
        while time.perf_counter() < end:
            np.dot(vectors[number], vectors[number])  # without the interpreter's lock
            read[number] += BUFFER_BYTES

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    with threadpool_limits(limits=1, user_api="blas"):  # a thread of ours is one reader, not many
        began = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(read) / (time.perf_counter() - began)
