"""Settings that change while calls go on: what is taken over, when a file has changed, and what a call notices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.session.rig import Call, FakeTransport
from tests.virtual_loop import run_virtual
from voice_agent.config import Source
from voice_agent.core.commands import Message
from voice_agent.engines.fakes import FakeTextToSpeech
from voice_agent.engines.ports import TextToSpeech
from voice_agent.errors import ModelError
from voice_agent.reload import RELOADABLE, FileWatch, Reloader, compare
from voice_agent.session.calls import CallBook
from voice_agent.session.session import Session
from voice_agent.settings import Settings

SPEECH = [(2.0, 3.0), (10.0, 11.0)]
ANSWER = "It is noon now my dear friend."


def test_what_a_call_is_made_of_is_taken_over_and_the_rest_is_named() -> None:
    running = Source.of({}, {}, None).load()
    wanted = Source.of(
        {"greeting": "Hi", "speed": "1.5", "tts": "/v.onnx", "port": "9", "turn_password": "secret"}, {}, None
    ).load()
    change = compare(running, wanted)
    assert set(change.taken) == {"greeting", "speed", "tts"}
    assert set(change.left) == {"port", "turn_password"}
    assert (change.settings.agent.greeting, change.settings.agent.speed, change.settings.models.tts) == (
        "Hi",
        1.5,
        "/v.onnx",
    )
    assert change.settings.server == running.server
    assert change.settings.webrtc == running.webrtc
    assert compare(change.settings, change.settings).taken == ()
    assert {"system_prompt", "greeting", "speed", "language", "tts"} <= RELOADABLE
    assert RELOADABLE.isdisjoint({"port", "api_keys", "lan", "llm", "stt", "max_sessions", "stun"})


def test_a_file_has_changed_when_it_has_come_to_rest(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("speed = 1")
    watch = FileWatch(file)
    assert not watch.changed()
    file.write_text("")  # an editor truncates …
    assert not watch.changed()
    file.write_text("speed = 2.5")  # … and then writes
    assert not watch.changed()
    assert watch.changed()
    assert not watch.changed()
    new = tmp_path / "new"
    new.write_text("speed = 3.5")  # as long as before
    os.utime(new, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    new.replace(file)
    assert [watch.changed(), watch.changed(), watch.changed()] == [False, True, False]


def test_a_file_that_is_gone_is_told_once_and_noticed_when_it_is_back(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    watch = FileWatch(file)
    assert not watch.changed()
    file.write_text("speed = 1")
    assert [watch.changed(), watch.changed(), watch.changed()] == [False, True, False]
    file.unlink()
    assert [watch.changed(), watch.changed(), watch.changed()] == [False, True, False]


class Voice(FakeTextToSpeech):
    @property
    def closed(self) -> bool:
        return self._closed


class Voices:
    def __init__(self, first: Voice, fails: str = "") -> None:
        self.current = first
        self.loaded: list[Voice] = []
        self.hold: asyncio.Event | None = None
        self._fails = fails

    async def load_voice(self, settings: Settings) -> TextToSpeech:
        if self._fails:
            raise ModelError(self._fails)
        if self.hold is not None:
            await self.hold.wait()
        self.loaded.append(Voice(len(self.loaded) + 2000))
        return self.loaded[-1]

    def use_voice(self, voice: TextToSpeech) -> TextToSpeech:
        assert isinstance(voice, Voice)
        old, self.current = self.current, voice
        return old

    async def drop_voice(self, voice: TextToSpeech) -> None:
        await voice.close()


class Counter:
    def session_started(self) -> None:
        """Not looked at."""

    def session_ended(self, reason: str) -> None:
        """Not looked at."""


class Rig:
    """Real book of calls, sessions and reloader; fake engines and transports, on a virtual clock."""

    def __init__(self, folder: Path, text: str = "", fails: str = "") -> None:
        self.file = folder / "agent.toml"
        self.file.write_text(text)
        self.first = Voice(1000)
        self.voices = Voices(self.first, fails)
        self.book = CallBook(self._connect, 4, 600.0, Counter(), lambda: asyncio.get_running_loop().time())
        source = Source.of({}, {}, self.file)
        self.settings = source.load()
        self.taken: list[Settings] = []
        self.calls: list[Call] = []
        self.reloader = Reloader(source, self.settings, self.voices, self.book, self._take_over)
        self._take_over(self.settings)

    def _take_over(self, settings: Settings) -> None:
        self.settings = settings
        self.taken.append(settings)
        self.book.open(self)  # type: ignore[arg-type]

    def build(self, session_id: str, transport: FakeTransport, earlier: tuple[Message, ...] = ()) -> Session:
        agent = self.settings.agent
        call = Call(SPEECH, ["What time is it?"], [ANSWER], seconds=20.0, greeting=agent.greeting)
        call.transport = transport
        call.build(self.voices.current, agent.system_prompt, agent.speed)
        self.calls.append(call)
        return call.session

    async def _connect(self, sdp: str, kind: str) -> tuple[Any, str]:
        await asyncio.sleep(0.1)
        return FakeTransport(SPEECH, 20.0), "answer"

    async def accept(self) -> str:
        return (await self.book.accept("offer", "offer", {}))[2]

    async def change(self, text: str) -> None:
        self.file.write_text(text)
        await self.reloader.reload()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())


def test_a_running_call_goes_on_and_takes_the_new_prompt_with_its_next_reply(tmp_path: Path) -> None:
    async def story() -> None:
        rig = Rig(tmp_path, 'system_prompt = "Old."')
        session = await rig.accept()
        await asyncio.sleep(6)  # the first answer has been heard
        await rig.change('system_prompt = "New."\nspeed = 2\ngreeting = "Hello there."')
        await asyncio.sleep(9)
        call = rig.calls[0]
        prompts = [request.messages[0].content for request in call.model.asked]
        assert (prompts[0], prompts[-1]) == ("Old.", "New.")
        report, history = rig.book.report(session), rig.book.history(session)
        assert report is not None
        assert history is not None
        assert report["active"]
        assert [turn["interrupted"] for turn in report["turns"]] == [False, False]
        spoken = [(message["role"], message["content"]) for message in history["messages"]]
        assert spoken[0] == ("system", "New.")
        assert [role for role, _ in spoken[1:]] == ["user", "assistant"] * 2
        await rig.accept()
        assert rig.calls[1].greeting == "Hello there."
        await rig.book.close()

    run(story)


def test_the_prompt_may_change_in_the_middle_of_a_reply(tmp_path: Path) -> None:
    async def story() -> None:
        rig = Rig(tmp_path, 'system_prompt = "Old."')
        session = await rig.accept()
        await asyncio.sleep(4.5)
        assert rig.calls[0].session.conversation.speaking is not None
        await rig.change('system_prompt = "New."')
        await asyncio.sleep(4)
        history = rig.book.history(session)
        assert history is not None
        assert history["messages"][-1] == {"role": "assistant", "content": ANSWER}
        await rig.book.close()

    run(story)


def test_a_new_voice_speaks_in_new_calls_and_the_old_one_closes_with_its_last_call(tmp_path: Path) -> None:
    async def story() -> None:
        rig = Rig(tmp_path)
        sessions = [await rig.accept() for _ in range(2)]
        await rig.change('tts = "/second.onnx"')
        later = await rig.accept()
        assert [call.session.uses(rig.first) for call in rig.calls] == [True, True, False]
        assert rig.calls[2].session.uses(rig.voices.loaded[0])
        await rig.change('tts = "/third.onnx"')
        await rig.book.hang_up(sessions[0])
        await asyncio.sleep(0.1)
        assert not rig.first.closed
        await asyncio.sleep(6)
        assert rig.first.asked  # the call of the old voice still speaks with it
        await rig.book.hang_up(sessions[1])
        await asyncio.sleep(0.1)
        assert rig.first.closed
        second, third = rig.voices.loaded
        assert (second.closed, third.closed) == (False, False)
        await rig.book.hang_up(later)
        await asyncio.sleep(0.1)
        assert (second.closed, third.closed) == (True, False)

    run(story)


def test_an_unused_voice_is_closed_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        rig = Rig(tmp_path)
        await rig.change('tts = "/second.onnx"')
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert rig.first.closed

    run(story)


def test_a_call_that_comes_while_it_connects_gets_the_voice_that_is_there_then(tmp_path: Path) -> None:
    async def story() -> None:
        rig = Rig(tmp_path)
        coming = asyncio.create_task(rig.accept())
        await asyncio.sleep(0.05)
        await rig.change('tts = "/second.onnx"')
        await coming
        assert rig.calls[0].session.uses(rig.voices.loaded[0])
        await rig.book.close()

    run(story)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('greting = "Hi"', "did you mean greeting"),
        ("speed = 9", "speed"),
        ("speed = ", "not valid TOML"),
        ('profile = "smal"', "did you mean small"),
    ],
)
def test_a_bad_file_is_one_clear_line_and_changes_nothing(
    tmp_path: Path, text: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        rig = Rig(tmp_path, 'greeting = "Old"')
        session = await rig.accept()
        await rig.change(text)
        (record,) = [one for one in caplog.records if "not reloaded" in one.message]
        assert told in record.message
        assert "agent.toml" in record.message
        assert "\n" not in record.message
        assert len(rig.taken) == 1
        await rig.accept()
        assert rig.calls[1].greeting == "Old"
        report = rig.book.report(session)
        assert report is not None
        assert report["active"]
        await rig.change('greeting = "Better"')
        assert rig.settings.agent.greeting == "Better"
        await rig.book.close()

    run(story)


def test_a_voice_that_cannot_be_loaded_changes_nothing_at_all(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        rig = Rig(tmp_path, fails="there is no file /gone.onnx")
        await rig.change('tts = "/gone.onnx"\ngreeting = "New"')
        assert "/gone.onnx" in caplog.text
        assert rig.settings.agent.greeting == ""
        assert rig.voices.current is rig.first

    run(story)


def test_keys_that_need_a_restart_are_named_and_secrets_are_not_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        rig = Rig(tmp_path)
        await rig.change('port = 99\napi_keys = ["hunter2"]\nspeed = 1.2')

    with caplog.at_level("INFO"):
        run(story)
    assert "settings reloaded: speed" in caplog.text
    assert "not before a restart: port, api_keys" in caplog.text
    assert "hunter2" not in caplog.text


def test_the_file_is_followed_and_a_reload_can_be_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        rig, asked = Rig(tmp_path), asyncio.Event()
        following = asyncio.create_task(rig.reloader.follow(asked, period=1.0))
        await asyncio.sleep(1.5)
        rig.file.write_text('greeting = "Followed"')
        await asyncio.sleep(1.0)
        assert rig.settings.agent.greeting == ""  # seen once: perhaps still being written
        await asyncio.sleep(1.0)
        assert rig.settings.agent.greeting == "Followed"
        rig.file.write_text('greeting = "Asked"')
        asked.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert rig.settings.agent.greeting == "Asked"
        asked.set()
        await asyncio.sleep(0.01)
        assert "nothing to reload" in caplog.text
        assert len(rig.taken) == 3
        following.cancel()
        await asyncio.wait([following])

    with caplog.at_level("INFO"):
        run(story)


def test_the_end_does_not_wait_for_a_voice_in_use(tmp_path: Path) -> None:
    async def story() -> None:
        rig = Rig(tmp_path)
        await rig.accept()
        following = asyncio.create_task(rig.reloader.follow(asyncio.Event()))
        await asyncio.sleep(0)
        await rig.change('tts = "/second.onnx"')
        following.cancel()
        await asyncio.wait([following])
        await rig.book.close()

    run(story)
