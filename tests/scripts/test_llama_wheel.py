"""Where the compiled wheel is kept, and when a kept one is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import llama_wheel

X86 = "processor\t: 0\nflags\t\t: fpu sse2 avx2 fma md_clear arch_capabilities\n"


def test_the_requirement_is_the_project_s() -> None:
    assert llama_wheel.requirement().startswith("llama-cpp-python>=")


@pytest.mark.parametrize(
    ("found", "wanted", "answer"),
    [
        ("0.3.36", "x>=0.3.30,<0.4", True),
        ("0.3.9", "x>=0.3.30,<0.4", False),
        ("0.4.0", "x>=0.3.30,<0.4", False),
        ("0.3.36", "x==0.3.36", True),
        ("0.3.37", "x==0.3.36", False),
    ],
)
def test_versions_compare_as_numbers(found: str, wanted: str, answer: bool) -> None:
    assert llama_wheel.satisfies(found, wanted) is answer


def test_only_instruction_sets_count() -> None:
    assert llama_wheel.cpu_features(X86) == ["avx2", "fma", "sse2"]
    assert llama_wheel.cpu_features("Features\t: fp asimd asimddp\n") == ["asimd", "asimddp"]
    assert llama_wheel.cpu_features("") == []


def test_another_processor_or_other_options_have_another_folder() -> None:
    environ = {"HOME": "/home/me"}
    here = llama_wheel.wheel_dir(environ, X86)
    assert here.is_relative_to("/home/me/.cache/voice-agent/wheels")
    assert llama_wheel.wheel_dir(environ, X86.replace("md_clear", "md_other")) == here
    assert llama_wheel.wheel_dir(environ, X86.replace("avx2", "avx512f")) != here
    assert llama_wheel.wheel_dir({**environ, "CMAKE_ARGS": "-DGGML_CUDA=on"}, X86) != here
    assert llama_wheel.wheel_dir({"XDG_CACHE_HOME": "/x"}, X86) == Path("/x/voice-agent/wheels") / here.name


def test_a_processor_with_tiles_gets_a_wheel_without_them() -> None:
    tiles = X86.replace("avx2", "avx2 amx_tile amx_int8 amx_bf16")
    environ = {"HOME": "/home/me", "CFLAGS": "-mamx-tile"}
    assert llama_wheel.compiler_flags(environ, X86) == {}
    flags = llama_wheel.compiler_flags(environ, tiles)
    assert flags == {"CFLAGS": f"{llama_wheel.WITHOUT_TILES} -mamx-tile", "CXXFLAGS": llama_wheel.WITHOUT_TILES}
    assert llama_wheel.wheel_dir(environ, tiles) != llama_wheel.wheel_dir({"HOME": "/home/me"}, tiles)


def test_a_kept_wheel_must_meet_the_requirement(tmp_path: Path) -> None:
    old, new = (tmp_path / f"llama_cpp_python-0.3.{n}-py3-none-linux_x86_64.whl" for n in (36, 37))
    for age, wheel in enumerate((new, old)):
        wheel.touch()
        os.utime(wheel, (1000 - age, 1000 - age))
    (tmp_path / "other-0.3.36-py3-none-any.whl").touch()
    assert llama_wheel.kept_wheel(tmp_path, "x>=0.3.30,<0.4") == new
    assert llama_wheel.kept_wheel(tmp_path, "x==0.3.36") == old
    assert llama_wheel.kept_wheel(tmp_path, "x>=0.4") is None
    assert llama_wheel.kept_wheel(tmp_path / "none", "x>=0.3") is None


@pytest.mark.parametrize(("cores", "gib", "jobs"), [(8, 64, 8), (8, 4, 4), (2, 0, 1)])
def test_each_compiler_has_a_core_and_memory(cores: int, gib: int, jobs: int) -> None:
    assert llama_wheel.build_jobs(cores, gib << 30) == jobs


def test_progress_is_the_last_step_named() -> None:
    assert llama_wheel.progress("cmake\n[1/193] a\n  [2/193] b\nnote[3]") == ", step 2 of 193"
    assert llama_wheel.progress("Collecting") == ""


def test_a_failed_build_shows_the_log_s_end_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = "llama-cpp-python @ file:///nowhere/llama_cpp_python-0.3.36.tar.gz"
    with llama_wheel.only_one(tmp_path):
        assert llama_wheel.build(tmp_path, wanted, {}) is None
    assert "No such file" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["build.log", "lock"]


def test_what_an_interrupted_build_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / f"{llama_wheel.SCRATCH}x" / "deep").mkdir(parents=True)
    with llama_wheel.only_one(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_second_builder_waits(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from scripts.llama_wheel import only_one\n"
        f"with only_one(Path({str(tmp_path)!r})): print('in')"
    )
    with llama_wheel.only_one(tmp_path):
        other = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=llama_wheel.PROJECT,
        )
        assert other.stderr is not None
        assert "waiting" in other.stderr.readline()
        assert other.poll() is None
    assert other.communicate()[0] == "in\n"
