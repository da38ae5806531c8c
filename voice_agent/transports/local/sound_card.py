"""A call over this machine's own microphone and loudspeaker (PortAudio, through the package sounddevice).

PortAudio calls back on a thread of its own. That thread only moves frames: caller audio goes to the event loop, agent
audio comes from a short queue that the loop refills each time the card has taken one, so the card sets the pace.

There is no echo cancellation: with loudspeakers the agent hears itself. Wear headphones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np

from voice_agent.audio.playout import Playout
from voice_agent.audio.resample import Resampler
from voice_agent.engines.ports import ENGINE_RATE, Pcm16
from voice_agent.errors import VoiceAgentError
from voice_agent.transports.ports import AudioFrame
from voice_agent.transports.webrtc.mailbox import Mailbox

RATE = 48_000
FRAME = 960
AHEAD = 3
"""Frames between the playout and the card: 60 ms in which the loop may be late without a gap."""
WAITING_FRAMES = 250
"""5 s of audio that the session has not listened to yet."""
UNSEEN_FRAMES = 50
"""1 s of audio that the loop was too busy to look at; then the oldest is lost."""
NO_PACKAGE = "the microphone needs the package sounddevice: pip install 'voice-agent[talk]'"
NO_PORTAUDIO = "the microphone needs the library PortAudio: apt install libportaudio2 (or brew install portaudio)"
WITHOUT = "`voice-agent talk --wav IN --out OUT` needs neither microphone nor loudspeaker"


def load_sounddevice() -> Any:
    """The module. Raises VoiceAgentError with what to install."""
    try:
        import sounddevice
    except ImportError as error:
        raise VoiceAgentError(f"{NO_PACKAGE}. {WITHOUT}.") from error
    except OSError as error:  # the package is there, the library it binds is not
        raise VoiceAgentError(f"{NO_PORTAUDIO}. {WITHOUT}.") from error
    return sounddevice


def check_devices(microphone: str | int | None = None, loudspeaker: str | int | None = None) -> None:
    """Whether both can be used as they are needed, without opening them. Raises VoiceAgentError."""
    sounddevice = load_sounddevice()
    shape = {"channels": 1, "dtype": "int16", "samplerate": RATE}
    for name, device, check in (
        ("microphone", microphone, sounddevice.check_input_settings),
        ("loudspeaker", loudspeaker, sounddevice.check_output_settings),
    ):
        try:
            check(device=device, **shape)
        except (sounddevice.PortAudioError, ValueError) as error:
            raise _unusable(name, error) from error


def _unusable(name: str, error: Exception) -> VoiceAgentError:
    return VoiceAgentError(f"no {name} can be opened ({error}). `python -m sounddevice` lists the devices. {WITHOUT}.")


class SoundCardCall:
    """`Transport` of one call. `open` before use; `close` ends it."""

    def __init__(self, clock: Callable[[], float], tell: Callable[[dict[str, Any]], None]) -> None:
        self.playout = Playout(RATE, FRAME)
        self.reason: str | None = None
        self._clock = clock
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._resampler = Resampler(RATE, ENGINE_RATE)
        self._frames: Mailbox[AudioFrame] = Mailbox(WAITING_FRAMES)
        self._messages: Mailbox[dict[str, Any]] = Mailbox(1)
        # Between the two threads; append and popleft are atomic. However fast a card calls back (ALSA's null
        # device has no pace at all), at most one look of ours is waiting on the loop.
        self._ready: deque[bytes] = deque(maxlen=AHEAD)
        self._heard: deque[tuple[Pcm16, float]] = deque(maxlen=UNSEEN_FRAMES)
        self._look_asked = False
        self._streams: list[Any] = []
        self._gaps = 0
        self._overruns = 0

    def open(self, microphone: str | int | None = None, loudspeaker: str | int | None = None) -> None:
        """Start both devices (None: the system's own choice). Raises VoiceAgentError if there is none."""
        sounddevice = load_sounddevice()
        shape = {"samplerate": RATE, "blocksize": FRAME, "channels": 1, "dtype": "int16", "latency": "low"}
        self._refill()
        for name, kind, device, callback in (
            ("microphone", sounddevice.RawInputStream, microphone, self._on_input),
            ("loudspeaker", sounddevice.RawOutputStream, loudspeaker, self._on_output),
        ):
            try:
                stream = kind(device=device, callback=callback, **shape)
                self._streams.append(stream)
                stream.start()
            except (sounddevice.PortAudioError, ValueError) as error:
                self._stop()
                raise _unusable(name, error) from error

    async def frames(self) -> AsyncIterator[AudioFrame]:
        async for frame in self._frames.items():
            yield frame

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        async for message in self._messages.items():
            yield message

    def send(self, message: dict[str, Any]) -> None:
        self._tell(message)

    def statistics(self) -> dict[str, float]:
        """`gaps`: frames the loudspeaker wanted and the loop was late with; `overruns`: lost by the microphone."""
        return {
            "frames_dropped": float(self._frames.dropped),
            "gaps": float(self._gaps),
            "overruns": float(self._overruns),
        }

    async def close(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._frames.close()
        self._messages.close()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        """Waits for the callbacks to end, so none comes after it."""
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.close()

    def _on_input(self, data: Any, frames: int, time: object, status: Any) -> None:
        """PortAudio's thread."""
        if status or len(self._heard) == UNSEEN_FRAMES:
            self._overruns += 1
        self._heard.append((np.frombuffer(bytes(data), np.int16), self._clock()))
        self._ask_for_a_look()

    def _on_output(self, data: Any, frames: int, time: object, status: Any) -> None:
        """PortAudio's thread."""
        try:
            data[:] = self._ready.popleft()
        except IndexError:
            self._gaps += 1
            data[:] = bytes(2 * frames)
        self._ask_for_a_look()

    def _ask_for_a_look(self) -> None:
        """PortAudio's threads. Asked twice in a rare race, which does no harm."""
        if not self._look_asked:
            self._look_asked = True
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        """The loop's thread: take what was heard, and lay out what is to be played."""
        self._look_asked = False  # before looking: what comes from now on asks again
        for _ in range(len(self._heard)):
            samples, at = self._heard.popleft()
            self._frames.put(AudioFrame(self._resampler.push(samples), at - self._resampler.delay))
        self._refill()

    def _refill(self) -> None:
        while len(self._ready) < AHEAD:
            self._ready.append(self.playout.next_frame().tobytes())
