"""A transport of one's own: a call that comes from one WAV file and goes into another.

python examples/wav_call.py question.wav answer.wav        question.wav: 16 kHz, mono, 16 bit
"""

from __future__ import annotations

import asyncio
import sys
import time
import wave
from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from voice_agent import Agent
from voice_agent.audio.playout import Playout
from voice_agent.engines.ports import Pcm16
from voice_agent.transports.ports import AudioFrame

FRAME = 320  # 20 ms at 16 kHz


class WavTransport:
    """Fits `voice_agent.transports.ports.Transport`."""

    def __init__(self, speech: Pcm16, patience: float = 4.0) -> None:
        """`speech` at 16 kHz; hang up after `patience` seconds in which nobody spoke."""
        self.playout = Playout()  # 48 kHz, frames of 20 ms
        self.reason: str | None = None
        self.heard: list[Pcm16] = []
        self._speech = np.concatenate([speech, np.zeros(-len(speech) % FRAME, np.int16)])
        self._patience = patience
        self._closed = asyncio.Event()

    async def frames(self) -> AsyncIterator[AudioFrame]:
        began = last_sound = time.monotonic()
        for number in range(1, 60 * 60 * 50):  # at most an hour
            at = began + number * 0.02
            await asyncio.sleep(at - time.monotonic())
            self.heard.append(self.playout.next_frame())  # the listener takes a frame whenever one is due
            samples = self._speech[(number - 1) * FRAME : number * FRAME]
            last_sound = at if len(samples) or self.heard[-1].any() else last_sound
            if self._closed.is_set() or at - last_sound > self._patience:
                return
            yield AudioFrame(samples if len(samples) else np.zeros(FRAME, np.int16), at)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        await self._closed.wait()
        for message in list[dict[str, Any]]():  # a file has no side channel
            yield message

    def send(self, message: dict[str, Any]) -> None:
        """See docs/events.md; a file has no page to show it on."""

    def statistics(self) -> dict[str, float]:
        return {}

    async def close(self, reason: str) -> None:
        self._closed.set()


async def main(question: str, answer: str) -> None:
    with wave.open(question) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (16_000, 1, 2):
            sys.exit(f"{question}: give a recording of 16 kHz, mono, 16 bit")
        transport = WavTransport(np.frombuffer(file.readframes(file.getnframes()), np.int16))
    async with Agent() as agent:  # loads the engines before the call begins
        call = await agent.call(transport)
    with wave.open(answer, "wb") as file:
        file.setparams((1, 2, transport.playout.rate, 0, "NONE", ""))
        file.writeframes(np.concatenate(transport.heard).tobytes())
    print(*(f"{message.role}: {message.content}" for message in call.history[1:]), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2]))
