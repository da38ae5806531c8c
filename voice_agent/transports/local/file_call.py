"""A call whose caller is a recording: it speaks at its own pace, whatever the agent does, as a caller would.

Every 20 ms of the loop's clock one frame of the recording is handed in and one frame of the playout taken. After the
recording there is silence until the agent has nothing left to say; then the caller hangs up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np

from voice_agent.audio.playout import Playout
from voice_agent.audio.resample import Resampler
from voice_agent.engines.ports import ENGINE_RATE, Pcm16
from voice_agent.errors import VoiceAgentError
from voice_agent.transports.local.stereo_file import StereoFile
from voice_agent.transports.ports import AudioFrame
from voice_agent.transports.webrtc.mailbox import Mailbox

RATE = 48_000
FRAME = 960
PERIOD = FRAME / RATE
QUIET = 1.0
"""Seconds both sides must have been silent after the recording: a pause is noticed up to 0.2 s after it began."""
PATIENCE = 60.0
"""Seconds after the recording at which the caller hangs up although the agent still talks."""
WAITING_FRAMES = 250
"""5 s of audio that the session has not listened to yet."""
OVER = "the recording is over"


class FileCall:
    """`Transport` of one call. `idle` says whether the agent owes nothing; it is looked at after the recording."""

    def __init__(
        self,
        caller: Iterator[Pcm16],
        clock: Callable[[], float],
        tell: Callable[[dict[str, Any]], None],
        recording: StereoFile | None = None,
    ) -> None:
        """`caller` gives frames of 960 samples at 48 kHz. `tell` gets the messages a client would get."""
        self.playout = Playout(RATE, FRAME)
        self.reason: str | None = None
        self.error: VoiceAgentError | None = None
        """What ended the call early: the recording could not be read to its end, or the other one not be written."""
        self.idle: Callable[[], bool] = lambda: True
        self._caller = caller
        self._clock = clock
        self._tell = tell
        self._recording = recording
        self._resampler = Resampler(RATE, ENGINE_RATE)
        self._frames: Mailbox[AudioFrame] = Mailbox(WAITING_FRAMES)
        self._messages: Mailbox[dict[str, Any]] = Mailbox(1)
        self._pacing: asyncio.Task[None] | None = None
        self._taken = 0

    async def frames(self) -> AsyncIterator[AudioFrame]:
        """The call begins when somebody listens."""
        if self._pacing is None and self.reason is None:
            self._pacing = asyncio.create_task(self._pace())
        async for frame in self._frames.items():
            yield frame

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        async for message in self._messages.items():
            yield message

    def send(self, message: dict[str, Any]) -> None:
        self._tell(message)

    def statistics(self) -> dict[str, float]:
        return {"seconds": self._taken * PERIOD, "frames_dropped": float(self._frames.dropped)}

    async def close(self, reason: str) -> None:
        self._end(reason)
        if self._pacing is not None:
            self._pacing.cancel()
            await asyncio.gather(self._pacing, return_exceptions=True)

    def _end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._frames.close()
        self._messages.close()

    async def _pace(self) -> None:
        began = self._clock()
        heard = 0
        quiet_frames = frames_after = 0
        sounding = self.playout.next_frame()
        try:
            while quiet_frames * PERIOD < QUIET and frames_after * PERIOD < PATIENCE:
                self._taken += 1
                await asyncio.sleep(began + self._taken * PERIOD - self._clock())
                spoken = next(self._caller, None)
                if spoken is None:
                    spoken = np.zeros(FRAME, np.int16)
                    frames_after += 1
                    quiet_frames = quiet_frames + 1 if self.idle() else 0
                samples = self._resampler.push(spoken)
                heard += len(samples)
                self._frames.put(AudioFrame(samples, began + heard / ENGINE_RATE))
                if self._recording is not None:
                    self._recording.write(spoken, sounding)
                # What is taken now sounds while the caller's next frame is spoken.
                sounding = self.playout.next_frame()
            self._end(OVER)
        except VoiceAgentError as error:
            self.error = error
            self._end("error")
