"""scripts/setup in a made-up checkout with a made-up Python, so that nothing is installed: stamps, lock, messages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYTHON = """\
#!/bin/bash
# Stands in for a Python: makes a venv of itself and writes down what pip was asked to do.
case "$*" in
    *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo venv >>log ;;
    *"version_info <"*) exit "${TOO_OLD:-0}" ;;
    *version_info*) echo 3.12 ;;
    *"pip --version"*) [[ ! -e no-pip ]] ;;
    *"pip install"*)
        if [[ -e gate ]]; then
            echo at-gate >started
            read -r _ <gate
        fi
        echo "pip ${*: -1}" >>log
        [[ ! -e no-network ]] ;;
    *) : ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", tmp_path / "scripts" / "setup")
    (tmp_path / "pyproject.toml").write_text("one")
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def _start(checkout: Path, *words: str, **environ: str) -> subprocess.Popen[str]:
    path = f"{checkout / 'bin'}:/usr/bin:/bin"
    return subprocess.Popen(
        [checkout / "scripts" / "setup", *words],
        env={"HOME": str(checkout), "PATH": path, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _setup(checkout: Path, *words: str, **environ: str) -> tuple[int, str, str]:
    process = _start(checkout, *words, **environ)
    out, error = process.communicate()
    return process.returncode, out, error


def _log(checkout: Path) -> list[str]:
    file = checkout / "log"
    return file.read_text().splitlines() if file.exists() else []


def test_the_second_time_nothing_is_done(checkout: Path) -> None:
    assert _setup(checkout, "runtime")[0] == 0
    assert _log(checkout) == ["venv", "pip ."]
    assert _setup(checkout, "runtime") == (0, "", "")
    assert _log(checkout) == ["venv", "pip ."]


def test_the_tools_include_the_runtime_but_not_the_other_way_round(checkout: Path) -> None:
    _setup(checkout, "runtime")
    _setup(checkout, "dev")
    _setup(checkout, "runtime")
    assert _log(checkout) == ["venv", "pip .", "pip .[dev]"]


def test_a_changed_project_or_a_moved_checkout_is_installed_again(checkout: Path) -> None:
    _setup(checkout, "runtime")
    (checkout / "pyproject.toml").write_text("two")
    _setup(checkout, "runtime")
    assert _log(checkout) == ["venv", "pip .", "pip ."]


def test_a_failed_step_says_what_to_do_and_is_done_again(checkout: Path) -> None:
    (checkout / "no-network").touch()
    code, _, error = _setup(checkout, "runtime")
    assert code == 1
    assert "make again" in error
    (checkout / "no-network").unlink()
    assert _setup(checkout, "runtime")[0] == 0
    assert _log(checkout) == ["venv", "pip .", "pip ."]


def test_a_venv_without_pip_is_made_anew(checkout: Path) -> None:
    """As an interrupted `python -m venv` leaves it."""
    (checkout / "no-network").touch()
    _setup(checkout, "runtime")
    (checkout / "no-network").unlink()
    (checkout / "no-pip").touch()
    _setup(checkout, "runtime")
    assert _log(checkout).count("venv") == 2


def test_a_venv_whose_python_is_gone_is_made_anew(checkout: Path) -> None:
    _setup(checkout, "runtime")
    (checkout / ".venv" / "bin" / "python").unlink()
    assert _setup(checkout, "runtime")[0] == 0
    assert _log(checkout).count("venv") == 2


def test_two_at_once_install_once(checkout: Path) -> None:
    os.mkfifo(checkout / "gate")
    os.mkfifo(checkout / "started")
    first = _start(checkout, "runtime")
    assert (checkout / "started").read_text() == "at-gate\n"
    second = _start(checkout, "runtime")
    assert second.stdout is not None
    assert "waiting for it" in second.stdout.readline()
    (checkout / "gate").write_text("go\n")
    assert first.wait() == second.wait() == 0
    assert _log(checkout) == ["venv", "pip ."]
    first.communicate()
    second.communicate()


def test_an_old_python_is_refused_with_the_next_step(checkout: Path) -> None:
    code, _, error = _setup(checkout, "runtime", TOO_OLD="1", PYTHON="python3")
    assert code == 1
    assert "PYTHON=python3 is not a Python 3.11 or newer" in error
    assert _log(checkout) == []


def test_an_unknown_step_is_refused(checkout: Path) -> None:
    code, _, error = _setup(checkout, "everything")
    assert code == 1
    assert "runtime, dev, browser or models" in error


def _without_venv_module(checkout: Path, **tools: str) -> None:
    """The made-up Python lacks ensurepip until `apt-get install` has run; `tools` are shell scripts by name."""
    python = checkout / "bin" / "python3"
    python.write_text(PYTHON.replace("*version_info*)", "*ensurepip*) [[ -e installed ]] ;;\n    *version_info*)"))
    for name, body in tools.items():
        tool = checkout / "bin" / name.replace("_", "-")
        tool.write_text(f"#!/bin/bash\n{body}\n")
        tool.chmod(0o755)


def test_without_root_the_command_to_run_is_printed(checkout: Path) -> None:
    _without_venv_module(checkout, id="echo 1000", sudo="exit 1", apt_get="exit 9")
    code, _, error = _setup(checkout, "runtime")
    assert code == 1
    assert "sudo apt-get update && sudo apt-get install -y --no-install-recommends python3.12-venv" in error


@pytest.mark.parametrize(("user", "prefix"), [("0", ""), ("1000", "sudo ")])
def test_packages_are_installed_and_lists_refreshed_if_need_be(checkout: Path, user: str, prefix: str) -> None:
    apt = (
        'echo "${SUDO}apt-get $*" >>log; case $1 in update) touch lists ;; *) [[ -e lists ]] && touch installed ;; esac'
    )
    _without_venv_module(checkout, id=f"echo {user}", sudo='shift; SUDO="sudo " "$@"', apt_get=apt)
    assert _setup(checkout, "runtime")[0] == 0
    install = f"{prefix}apt-get install -y --no-install-recommends python3.12-venv"
    assert _log(checkout) == [install, f"{prefix}apt-get update", install, "venv", "pip ."]


def test_packages_that_cannot_be_installed_end_the_set_up(checkout: Path) -> None:
    _without_venv_module(checkout, id="echo 0", apt_get='[[ $1 == update ]] || { echo "E: no network" >&2; exit 100; }')
    code, _, error = _setup(checkout, "runtime")
    assert code == 1
    assert "E: no network" in error
    assert "apt could not install python3.12-venv" in error
