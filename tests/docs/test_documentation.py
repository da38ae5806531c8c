"""What the documentation shows is true: links lead somewhere, commands parse, settings exist, programs compile."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import voice_agent
from voice_agent.cli.main import COMMANDS, build_parser
from voice_agent.config import KEYS, load_settings
from voice_agent.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@dataclass(frozen=True)
class Block:
    """A block of code: its language ('' for an indented one) and its lines."""

    page: Path
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield Block(page, match[1], match[2])
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for match in re.finditer(r"(?:^    .*\n)+", prose, re.MULTILINE):
        yield Block(page, "", re.sub(r"^    ", "", match[0], flags=re.MULTILINE))


def prose(page: Path) -> str:
    """The page without code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^    .*$", "", text, flags=re.MULTILINE))


def slug(heading: str) -> str:
    """As GitHub makes anchors."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(page: Path) -> list[str]:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            broken.append(f"{page.name}: {target}")
        elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)):
            broken.append(f"{page.name}: {target} (no such heading)")
    return broken


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words after `voice-agent` of every command line the page shows, in blocks and in running text."""
    lines = [line for block in blocks(page) if block.language in ("", "sh", "bash") for line in block.text.splitlines()]
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]
    for line in lines:
        match = re.match(r"(?:\$ )?(?:[A-Z_]+=\S* )*(?:\.venv/bin/)?voice-agent( .*)?$", line.strip())
        if match and match[1]:
            words = shlex.split(match[1], comments=True)
            stop = next((number for number, word in enumerate(words) if word in ("|", ">", "&", "…")), len(words))
            # The name of a command in running text is no command line, and COMMAND stands for any.
            if words[:stop] not in ([], *([name] for name in COMMANDS)) and words[0] != "COMMAND":
                yield words[:stop]


def complaint(words: list[str]) -> str:
    """What the command line says about these arguments; empty if they are fine."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            args = build_parser().parse_args(words)
    except SystemExit as end:
        return "" if end.code == 0 else said.getvalue().splitlines()[-1]
    keys = [pair.partition("=")[0] for pair in getattr(args, "pairs", [])]
    unknown = [key for key in keys if key not in KEYS and not key.isupper()]
    return f"no setting {unknown}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_command_lines_parse(page: Path) -> None:
    wrong = {" ".join(words): problem for words in command_lines(page) if (problem := complaint(words))}
    assert wrong == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_are_settings(page: Path) -> None:
    shown = set(re.findall(r"VOICE_AGENT_([A-Z_]+[A-Z])=", page.read_text())) - {"CONFIG", "TEST_FULL", "KEY"}
    assert {name for name in shown if name.lower() not in KEYS} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_files_load(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language != "toml" or tomllib.loads(block.text).keys() & {"project"}:
            continue
        (tmp_path / "agent.toml").write_text(block.text)
        load_settings({}, {}, tmp_path / "agent.toml")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_programs_compile_and_import_what_is_there(page: Path) -> None:
    for block in blocks(page):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and node.module == "voice_agent":
                assert {name.name for name in node.names} <= set(voice_agent.__all__)
            elif (
                isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("tests", "examples")
            ):
                assert list(ROOT.glob(f"{node.module.replace('.', '/')}*")), node.module


def test_defaults_in_the_tuning_table_are_the_real_ones() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", (ROOT / "docs" / "tuning-latency.md").read_text(), re.MULTILINE)
    assert len(rows) > 10
    assert dict(rows) == {name: str(KEYS[name].default).lower() for name, _ in rows}


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in index]
    assert sorted(missing) == ["index.md"]
    assert "(docs/index.md)" in (ROOT / "README.md").read_text()


# --- that these tests would notice --------------------------------------------------------------------------------


def test_a_wrong_link_command_or_setting_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n[here](#a-page) [lost](gone.md) [anchor](#nowhere)\n\n"
        "    voice-agent serve --prot 9000   # comment\n    VOICE_AGENT_PORT=1 voice-agent serve --set min_dealy=1\n\n"
        "`voice-agent\nsing now` and `voice-agent models list | pull`\n"
    )
    assert broken_links(page) == ["page.md: gone.md", "page.md: #nowhere (no such heading)"]
    problems = [complaint(words) for words in command_lines(page)]
    assert "--prot" in problems[0]
    assert "min_dealy" in problems[1]
    assert "sing" in problems[2]
    assert problems[3] == ""
    with pytest.raises(ConfigError):
        load_settings({}, {}, page)
