"""A TOML file with every setting, its default, what it means and what it may be.

What a setting means is the docstring under its field in `settings.py`: the one place where it is explained.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from voice_agent import settings
from voice_agent.config import KEYS, PATTERNS, Key, allowed_values

WIDTH = 100
_IN_TOML = {bool: "true or false", str: "", tuple[str, ...]: "a list of texts"}
"""Where a file has a narrower way to write a value than a flag has, or what is allowed goes without saying."""

HEADER = """\
# Settings of voice-agent: every key with its default.
#
#   voice-agent serve --config THIS_FILE        or: export VOICE_AGENT_CONFIG=THIS_FILE
#   voice-agent config show --config THIS_FILE  what holds in the end, and where each value was set
#
# A flag wins over the environment (VOICE_AGENT_PORT=9000), the environment over this file. You may delete what you do
# not change: then the program's own default holds, also when a later version has a better one.
"""


def template() -> str:
    """The text of the file; reading it gives the defaults."""
    meanings = explanations()
    lines = [HEADER]
    group = ""
    for key in KEYS.values():
        if key.group != group:
            group = key.group
            lines += ["", f"[{group}]"]
        lines += [*_comment(key, meanings.get(key.name, "")), f"{key.name} = {toml_value(key.default)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def explanations() -> Mapping[str, str]:
    """The docstring under each setting's field, by key, on one line."""
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(settings)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(text):
                assert isinstance(text, ast.Expr)
                found[field.target.id] = " ".join(ast.literal_eval(text.value).split())
    return {name: text for name, text in found.items() if name in KEYS}


def toml_value(value: Any) -> str:
    """A text, number, flag or list of texts as TOML. JSON's strings are TOML's basic strings, but for one character."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _comment(key: Key, meaning: str) -> list[str]:
    allowed = allowed_values(key) if key.name in PATTERNS else _IN_TOML.get(key.type, allowed_values(key))
    text = " ".join(part for part in (meaning, f"({allowed})" if allowed else "") if part)
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
