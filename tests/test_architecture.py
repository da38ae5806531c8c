"""Holds the repository to the direction of imports and to its sizes, and shows that each rule would notice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import architecture_rules as rules

ROOT = Path(__file__).resolve().parents[1]


def _python(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _in_repository() -> list[Path]:
    """Files git tracks or would track; outside a checkout there is nothing to judge."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_imports_point_in_one_direction() -> None:
    problems = [
        problem
        for path in _python(rules.PACKAGE)
        for problem in rules.import_violations(
            path.read_text(), rules.module_name(path, ROOT), is_package=path.name == "__init__.py"
        )
    ]
    assert not problems, "\n".join(problems)


def test_every_area_of_the_rules_exists() -> None:
    missing = [area for area in rules.RULES if not list((ROOT / rules.PACKAGE).glob(f"{area}*"))]
    assert not missing, f"rules for code that is gone: {missing}"


def test_python_stays_small() -> None:
    problems = rules.judge(_python(rules.PACKAGE, "tests", "scripts"), ROOT, rules.python_size_violations)
    assert not problems, "\n".join(problems)


def test_web_stays_small() -> None:
    scripts = sorted((ROOT / "web").rglob("*.js"))
    others = sorted(path for path in (ROOT / "web").rglob("*") if path.suffix in (".css", ".html"))
    problems = rules.judge(scripts, ROOT, rules.javascript_violations)
    problems += rules.judge(others, ROOT, lambda text, name: list(rules.file_size_violations(text, name)))
    assert not problems, "\n".join(problems)


def test_files_name_no_machine_and_hold_no_weights() -> None:
    problems = [
        problem
        for path in _in_repository()
        for problem in rules.content_violations(path.read_bytes(), str(path.relative_to(ROOT)))
    ]
    assert not problems, "\n".join(problems)


# --- the rules themselves, on planted code -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("voice_agent.core.turn", "import time"),
        ("voice_agent.core.turn", "from os import path"),
        ("voice_agent.core.turn", "import numpy"),
        ("voice_agent.core.turn", "def f():\n    import random"),
        ("voice_agent.core.turn", "from voice_agent.session import session"),
        ("voice_agent.core.turn", "from ..audio import ring"),
        ("voice_agent.core.turn", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import asyncio"),
        ("voice_agent.text.speakable", "from voice_agent.core import turn"),
        ("voice_agent.text.speakable", "import logging"),
        ("voice_agent.audio.ring", "import scipy"),
        ("voice_agent.audio.ring", "import threading"),
        ("voice_agent.audio.ring", "from voice_agent.engines import whisper"),
        ("voice_agent.engines.whisper", "from voice_agent.core.turn import Turn"),
        ("voice_agent.engines.whisper", "from voice_agent.transports.ports import Transport"),
        ("voice_agent.engines.whisper", "import voice_agent.server.app"),
        ("voice_agent.transports.webrtc.peer", "from voice_agent.core import events"),
        ("voice_agent.transports.webrtc.peer", "from voice_agent.engines.whisper import Whisper"),
        ("voice_agent.session.session", "from voice_agent.transports.webrtc import peer"),
        ("voice_agent.session.session", "from voice_agent.engines.whisper import Whisper"),
        ("voice_agent.session.session", "from voice_agent.server import app"),
        ("voice_agent.server.offers", "from voice_agent.core import history"),
        ("voice_agent.server.offers", "from voice_agent.engines import ports"),
        ("voice_agent.modelstore.fetch", "from voice_agent.engines.whisper import Whisper"),
        ("voice_agent.errors", "import voice_agent.settings"),
        ("voice_agent.cli.main", "from voice_agent.app import serve"),
        ("voice_agent.cli.report", "def register(c): ...\nfrom voice_agent.app import serve"),
        ("voice_agent.cli.report", "import numpy\ndef register(c): ..."),
        ("voice_agent.cli.report", "def f():\n    from voice_agent.engines.whisper import Whisper"),
        ("voice_agent.replay", "from voice_agent.engines import whisper"),
    ],
)
def test_an_import_against_the_direction_is_found(module: str, line: str) -> None:
    assert len(rules.import_violations(line, module)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("voice_agent.core.turn", "from __future__ import annotations\nfrom voice_agent.core.events import Event"),
        ("voice_agent.core.turn", "from voice_agent.text import clauses\nimport collections.abc"),
        ("voice_agent.audio.ring", "import numpy as np\nfrom voice_agent.engines.ports import Pcm16"),
        ("voice_agent.engines.whisper", "import asyncio\nfrom voice_agent.engines.worker import Worker"),
        ("voice_agent.session.session", "import time\nfrom voice_agent.transports.ports import Transport"),
        ("voice_agent.server.offers", "from voice_agent.transports.webrtc import accept"),
        ("voice_agent.engine_makers", "from voice_agent.engines.whisper import Whisper"),
        ("voice_agent.cli.report", "def register(c):\n    from voice_agent.app import serve"),
        ("voice_agent.cli.main", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy"),
        ("voice_agent.cli.report_table", "import numpy"),
    ],
)
def test_an_import_along_the_direction_is_fine(module: str, line: str) -> None:
    assert rules.import_violations(line, module) == []


def test_relative_imports_are_resolved() -> None:
    found = rules.imports_of("from . import a\nfrom .b import c\nfrom .. import d", "voice_agent.core.turn")
    assert [item.module for item in found] == ["voice_agent.core.a", "voice_agent.core.b.c", "voice_agent.d"]
    (inside,) = rules.imports_of("from .b import c", "voice_agent.core", is_package=True)
    assert inside.module == "voice_agent.core.b.c"


def _function(lines: int, *, indent: str = "") -> str:
    return f"{indent}def f():\n" + f"{indent}    x = 1\n" * (lines - 1)


def test_a_long_function_is_found() -> None:
    assert rules.python_size_violations(_function(60), "a.py") == []
    assert rules.python_size_violations(_function(61), "a.py") == ["a.py:1 f has 61 lines (at most 60)"]
    in_class = "class C:\n" + _function(61, indent="    ").replace("def", "async def")
    assert rules.python_size_violations(in_class, "a.py") == ["a.py:2 f has 61 lines (at most 60)"]


def test_a_wide_class_is_found() -> None:
    def source(count: int) -> str:
        methods = "".join(f"    def m{n}(self): ...\n" for n in range(count))
        return f"class C:\n{methods}    def _private(self): ...\n"

    assert rules.python_size_violations(source(15), "a.py") == []
    assert rules.python_size_violations(source(16), "a.py") == ["a.py:1 C has 16 public methods (at most 15)"]


@pytest.mark.parametrize("check", [rules.python_size_violations, rules.javascript_violations])
def test_a_long_file_is_found(check) -> None:
    assert check("\n" * 400, "a") == []
    assert check("\n" * 401, "a") == ["a has 401 lines (at most 400)"]


@pytest.mark.parametrize(
    "head",
    [
        "function f(a, b) {",
        "const f = (a) => {",
        "  async read(x = g()) {",
        "on('click', async () => {",
        "get size() {",
    ],
)
def test_a_long_javascript_function_is_found(head: str) -> None:
    def source(lines: int) -> str:
        return "// {\n" + head + "\n" + "  if (x) { y('}'); }\n" * (lines - 2) + "}\n"

    assert rules.javascript_violations(source(60), "a.js") == []
    assert rules.javascript_violations(source(61), "a.js") == ["a.js:2 a function of 61 lines (at most 60)"]


def test_javascript_braces_that_open_no_function_are_left_alone() -> None:
    long = "  x();\n" * 70
    for head in ("class A extends B {", "const a = {", "for (const x of y) {", "if (f(a) && g(b)) {"):
        assert rules.javascript_violations(f"{head}\n{long}}}\n", "a.js") == []


def test_javascript_texts_and_expressions_do_not_count() -> None:
    source = "function f() {\n  a = /[{}]'\"/; b = `{ ${c} `; d = 'it\\'s {'; /* { */\n}\n" + "x();\n" * 70
    assert rules.javascript_violations(source, "a.js") == []


@pytest.mark.parametrize("text", ["cd /work" + "/main", "https://pypi" + ".org/simple", "/root" + "/.cache"])
def test_a_machine_in_a_file_is_found(text: str) -> None:
    assert len(rules.content_violations(f"first\n{text}\n".encode(), "a.md")) == 1
    assert rules.content_violations(b"a framework/thing and rootless\n", "a.md") == []


def test_a_large_file_is_found() -> None:
    assert len(rules.content_violations(b"\0" * 1_000_001, "model.bin")) == 1
    assert rules.content_violations(b"\xff\xfe binary", "icon.ico") == []
