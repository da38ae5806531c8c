"""The faster copy of a language model: made once, in one piece, and never at the price of starting."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from voice_agent.engines.llama_engine import LlamaEngine
from voice_agent.engines.llama_requantise import fast_copy
from voice_agent.engines.ports import ChatMessage, ChatRequest, TextDelta


@pytest.fixture(scope="module")
def source(weights: Path) -> Path:
    return weights / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_the_copy_answers_and_is_made_once(source: Path, tmp_path: Path) -> None:
    copy = fast_copy(source, tmp_path, threads=2)
    assert copy != source
    made = copy.stat()
    assert fast_copy(source, tmp_path, threads=2) == copy
    assert copy.stat().st_mtime_ns == made.st_mtime_ns
    assert list(tmp_path.glob("*.part")) == []

    async def ask() -> str:
        engine = LlamaEngine(copy, threads=2, n_ctx=512, max_conversations=1)
        request = ChatRequest("c", (ChatMessage("user", "Say hello."),), max_tokens=12, temperature=0.0)
        text = "".join([event.text async for event in engine.stream(request) if isinstance(event, TextDelta)])
        await engine.close()
        return text

    assert "hello" in asyncio.run(ask()).lower()


def test_a_folder_that_cannot_be_written_leaves_the_file_as_it_is(source: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert fast_copy(source, tmp_path / "taken", threads=1) == source


def test_a_broken_source_is_used_as_it_is_and_fails_where_it_is_loaded(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + os.urandom(100))
    assert fast_copy(broken, tmp_path / "copies", threads=1) == broken


def test_a_changed_source_gets_a_new_copy(source: Path, tmp_path: Path) -> None:
    link = tmp_path / "model.gguf"
    link.write_bytes(source.read_bytes())
    first = fast_copy(link, tmp_path / "copies", threads=2)
    os.utime(link, ns=(1, 1))
    assert fast_copy(link, tmp_path / "copies", threads=2) != first
