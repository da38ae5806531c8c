"""The rules of docs/architecture.md as functions that return violations, one line each.

They read source text only, so they can be tried on planted code and never import what they judge.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "voice_agent"
MAX_FILE, MAX_FUNCTION, MAX_METHODS = 400, 60, 15

IMPURE = frozenset({"asyncio", "threading", "socket", "time", "logging", "random", "os"})
"""Standard modules that a pure package must not touch: they wait, read a clock, do I/O or roll dice."""
STDLIB = frozenset(sys.stdlib_module_names)
PURE = STDLIB - IMPURE


@dataclass(frozen=True, slots=True)
class Imported:
    """One import statement's target, always absolute: `voice_agent.core.turn`, `numpy`."""

    module: str
    line: int
    lazy: bool
    """Inside a function, or for type checkers only: not executed when the module is loaded."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a package may import: of ours by prefix, and of others by top-level name (None: anything)."""

    ours: frozenset[str]
    others: frozenset[str] | None = None


def _rule(ours: str, others: Iterable[str] | None = None) -> Rule:
    return Rule(frozenset(ours.split()), None if others is None else frozenset(others))


RULES: dict[str, Rule] = {
    "core": _rule("core text", PURE),
    "text": _rule("text", PURE),
    "audio": _rule("audio engines.ports", PURE | {"numpy", "soxr", "av"}),
    "engines": _rule("engines audio text errors settings"),
    "transports": _rule("transports audio engines.ports settings errors"),
    "session": _rule("session core engines.ports transports.ports audio text languages settings errors"),
    "server": _rule("server session settings errors transports"),
    "bench": _rule(
        "bench audio engines.ports engines.speech errors settings modelstore"
        " transports.webrtc.ice transports.webrtc.seams"
    ),
    "lan": _rule("lan server.joining settings config errors"),
    "report": _rule("report core.latency session.trace errors", STDLIB),
    "replay": _rule("core session.trace errors", STDLIB),
    "doctor": _rule("doctor report.figures transports.local.sound_card modelstore config settings errors"),
    "reload": _rule("config engines.ports settings errors"),
    "modelstore": _rule("modelstore settings errors plugins"),
    "plugins": _rule("settings errors", STDLIB),
    "errors": _rule("", PURE),
    "settings": _rule("", PURE),
    "config": _rule("languages settings errors", STDLIB),
    "languages": _rule("", PURE),
}
"""By package or module right under voice_agent/. What is not named here (app, cli, …) may import anything of ours but
concrete engines, which only `engine_makers` does."""

CLI_AT_LOAD = _rule("cli config settings errors", STDLIB)
"""What a command's module may import when it is loaded; the rest goes inside its functions, so that --help is fast."""


def imports_of(source: str, module: str, *, is_package: bool = False) -> list[Imported]:
    """All imports of a module, relative ones resolved, wherever in the file they stand."""
    found: list[Imported] = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Imported(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            # `from voice_agent.engines import whisper` imports the module whisper; judge the longer name.
            whole = base == PACKAGE or base.startswith(PACKAGE + ".")
            names = [f"{base}.{alias.name}" if whole else base for alias in node.names]
            found.extend(Imported(name, node.lineno, lazy) for name in names)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                visit(statement, True)
            for statement in node.orelse:
                visit(statement, lazy)
            return
        inner = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(ast.parse(source), False)
    return found


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.split(".")
    up = node.level - 1 if is_package else node.level
    parents = parts[: len(parts) - up]
    return ".".join([*parents, node.module] if node.module else parents)


def _within(name: str, prefixes: Iterable[str]) -> bool:
    """Whether a name without the leading `voice_agent.` is one of the prefixes or lies under it."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _breaks(item: Imported, rule: Rule) -> bool:
    top, _, rest = item.module.partition(".")
    if top == PACKAGE:
        return not _within(rest, rule.ours)
    return top != "__future__" and rule.others is not None and top not in rule.others


def import_violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Imports of `module` (dotted, from `voice_agent`) that go against the direction."""
    area = module.split(".")[1] if "." in module else ""
    rule = RULES.get(area)
    # Helpers of a command are loaded by its functions; what a command loads at once, every --help pays for.
    command = area == "cli" and (module.endswith(".main") or re.search(r"^def register\(", source, re.MULTILINE))
    problems: list[str] = []
    for item in imports_of(source, module, is_package=is_package):
        where = f"{module}:{item.line} imports {item.module}"
        if rule is not None and _breaks(item, rule):
            problems.append(f"{where}: not allowed in {area}")
        if command and not item.lazy and _breaks(item, CLI_AT_LOAD):
            problems.append(f"{where}: import it inside the function that needs it")
        name = item.module.removeprefix(PACKAGE + ".")
        concrete = name.startswith("engines.") and not _within(name, ["engines.ports"])
        if concrete and area not in ("engine_makers", "engines") and rule is None:
            problems.append(f"{where}: only engine_makers names concrete engines")
    return problems


def python_size_violations(source: str, name: str) -> list[str]:
    """Files, functions and classes that have grown too large to be read at once."""
    problems = list(file_size_violations(source, name))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                problems.append(f"{name}:{node.lineno} {node.name} has {length} lines (at most {MAX_FUNCTION})")
        elif isinstance(node, ast.ClassDef):
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            methods = {item.name for item in node.body if isinstance(item, functions) and item.name[0] != "_"}
            if len(methods) > MAX_METHODS:
                problems.append(
                    f"{name}:{node.lineno} {node.name} has {len(methods)} public methods (at most {MAX_METHODS})"
                )
    return problems


def file_size_violations(source: str, name: str) -> Iterator[str]:
    if (length := len(source.splitlines())) > MAX_FILE:
        yield f"{name} has {length} lines (at most {MAX_FILE})"


_JS_QUIET = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`"  # texts; templates with their ${…} inside
    r"|(?:(?<=[=(,:;!&|?{}\[])|(?<=return)|(?<=^))[ \t]*/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n*\[])+/",  # expressions
    re.DOTALL | re.MULTILINE,
)
_JS_FUNCTION = re.compile(r"(=>\s*|\)\s*)$")
_JS_NO_FUNCTION = re.compile(r"\b(if|for|while|switch|catch|with)\s*(await\s*)?$")


def javascript_violations(source: str, name: str) -> list[str]:
    """The same limits for files and functions, by matching braces outside comments, texts and regular expressions."""
    problems = list(file_size_violations(source, name))
    quiet = _JS_QUIET.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    opened: list[int | None] = []
    for position, character in enumerate(quiet):
        if character == "{":
            opened.append(_function_line(quiet, position))
        elif character == "}" and opened and (begin := opened.pop()) is not None:
            length = quiet.count("\n", 0, position) + 1 - begin + 1
            if length > MAX_FUNCTION:
                problems.append(f"{name}:{begin} a function of {length} lines (at most {MAX_FUNCTION})")
    return problems


def _function_line(text: str, brace: int) -> int | None:
    """The line on which the function whose body opens at `brace` begins; None if the brace opens something else."""
    ending = _JS_FUNCTION.search(text[:brace])
    if ending is None:
        return None
    if ending[0].startswith("=>"):
        return text.count("\n", 0, ending.start()) + 1
    depth, at = 0, ending.start()
    while at >= 0:
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            break
        at -= 1
    if _JS_NO_FUNCTION.search(text[: max(at, 0)]):
        return None
    return text.count("\n", 0, max(at, 0)) + 1


# Written in pieces, or this file would be the first to break its own rule.
_MACHINE_PATHS = re.compile(
    "|".join(["/work" + "/", "/opt/" + "(pypi|wheels)", "/root" + "/", r"pypi\." + "org", r"python" + r"hosted\.org"])
)
MAX_BYTES = 1_000_000


def content_violations(content: bytes, name: str) -> list[str]:
    """Names of one particular machine or registry, and files too large to belong into a repository."""
    if len(content) > MAX_BYTES:
        return [f"{name} has {len(content):,} bytes: weights, recordings and traces are not committed"]
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return []
    return [
        f"{name}:{number} mentions {match[0]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := _MACHINE_PATHS.search(line))
    ]


def module_name(path: Path, root: Path) -> str:
    """`voice_agent/core/turn.py` is `voice_agent.core.turn`; a package's __init__ has the package's name."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def judge(paths: Iterable[Path], root: Path, check: Callable[[str, str], list[str]]) -> list[str]:
    """Run a check of source text and name over files."""
    return [problem for path in paths for problem in check(path.read_text(), str(path.relative_to(root)))]
