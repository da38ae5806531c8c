"""What `import voice_agent` gives: everything it promises, and nothing heavy before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import voice_agent


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in voice_agent.__all__:
        assert getattr(voice_agent, name).__doc__, name
    assert set(voice_agent.__all__) <= set(dir(voice_agent))


def test_the_promised_names_are_those_that_can_be_imported() -> None:
    assert sorted(voice_agent._HOME) == sorted(voice_agent.__all__)


def test_another_name_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
        _ = voice_agent.Agnet


def test_the_import_and_an_agent_load_nothing_heavy() -> None:
    heavy = ["numpy", "av", "aiortc", "llama_cpp", "onnxruntime", "starlette", "uvicorn"]
    script = "\n".join(
        [
            "import sys, voice_agent",
            "assert not [name for name in sys.modules if name.startswith('voice_agent.')], 'not lazy'",
            "voice_agent.Agent('Be brief.')",
            f"print(*[name for name in {heavy} if name in sys.modules])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
