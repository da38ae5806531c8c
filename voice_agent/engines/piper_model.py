"""A Piper voice's network, in two halves: phonemes to latent frames, latent frames to sound.

The second half is a stack of convolutions that sees a few frames to either side and takes two thirds of the time. Run
on pieces that overlap by that much it gives the same samples as run on everything, so the beginning of a sentence can
be heard while the rest is still being computed. Voices that cannot be cut (several speakers, an unknown architecture)
are run whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from voice_agent.engines.onnx_session import open_session
from voice_agent.errors import EngineError

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]

INPUTS = ("input", "input_lengths", "scales")
CONTEXT = 16
"""Latent frames a sample depends on to either side. Measured for a medium voice: with 8 the samples differ by 0.0005,
with 12 by rounding only; high quality voices see a little further."""
FIRST_PIECE = 20
"""Latent frames of the first piece, 0.23 s at 22 kHz, heard for several times as long as the second takes to make.
Every further piece is twice as long, which costs less overlap …"""
LONGEST_PIECE = 256
"""… up to this length, so that cancelling never waits long."""
SHORTEST_REST = 24
SAME = 1e-3
"""Largest difference (full scale is 1) between sound made in pieces and at once that counts as the same."""


@dataclass(frozen=True, slots=True)
class Uttered:
    """One sentence between the two halves."""

    latent: Floats | None
    """Shape (1, channels, frames); None where the voice is run whole."""
    audio: Floats | None
    """Then this is its sound."""
    durations: NDArray[np.int64] | None
    """Samples of each phoneme id, if the voice tells."""
    samples: int
    """Length of the sound."""


class PiperModel:
    """Blocking. Not for two threads at once."""

    def __init__(self, path: Path, threads: int, hop: int) -> None:
        """`hop` is the number of samples per latent frame. Raises EngineError `load`."""
        self._hop = hop
        whole = _with_durations(path)
        self._front = open_session("piper", path, threads, INPUTS, whole.SerializeToString() if whole else None)
        self._back: ort.InferenceSession | None = None
        if whole is not None:
            self._cut(path, threads, whole)

    @property
    def in_pieces(self) -> bool:
        return self._back is not None

    def utter(self, ids: list[int], scales: tuple[float, float, float], speaker: int | None) -> Uttered:
        """`scales`: noise, length, and noise of the durations."""
        inputs: dict[str, NDArray[Any]] = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(scales, np.float32),
        }
        if speaker is not None:
            inputs["sid"] = np.array([speaker], np.int64)
        first, *rest = self._front.run(None, inputs)
        durations = (rest[0].reshape(-1) * self._hop).astype(np.int64) if rest else None
        if self._back is not None:
            return Uttered(first, None, durations, first.shape[2] * self._hop)
        audio = np.clip(first.reshape(-1), -1.0, 1.0)
        return Uttered(None, audio, durations, audio.size)

    def sound(self, uttered: Uttered) -> Iterator[tuple[Floats, bool]]:
        """The sentence's samples, -1 to 1, piece by piece, each computed when asked for; and which is the last."""
        if uttered.audio is not None:
            yield uttered.audio, True
        if uttered.latent is None:
            return
        frames, begin, size = uttered.latent.shape[2], 0, FIRST_PIECE
        while begin < frames:
            end = begin + size if frames - begin - size >= SHORTEST_REST else frames
            yield self._piece(uttered.latent, begin, end), end == frames
            begin, size = end, min(2 * size, LONGEST_PIECE)

    def _piece(self, latent: Floats, begin: int, end: int) -> Floats:
        if self._back is None:
            raise TypeError("this voice is run whole")
        since = max(begin - CONTEXT, 0)
        seen = np.ascontiguousarray(latent[:, :, since : end + CONTEXT])
        audio = self._back.run(None, {self._back.get_inputs()[0].name: seen})[0].reshape(-1)
        clipped: Floats = np.clip(audio[(begin - since) * self._hop : (end - since) * self._hop], -1.0, 1.0)
        return clipped

    def _cut(self, path: Path, threads: int, whole: Any) -> None:
        """Replace the whole network by its halves, if that gives the same sound."""
        try:
            front, back = _halves(whole)
            first = open_session("piper", path, threads, INPUTS, front.SerializeToString(), spin=True)
            second = open_session("piper", path, threads, (), back.SerializeToString(), spin=True)
            channels = int(second.get_inputs()[0].shape[1])
            self._back = second
            if len(second.get_inputs()) != 1 or not self._same_in_pieces(channels):
                raise ValueError("its sound cannot be made in pieces")
        except Exception as error:  # an optimisation: whatever is unusual about this voice, it can still speak
            self._back = None
            log.info("= the voice %s is synthesised a sentence at a time (%s)", path.name, error)
        else:
            self._front = first

    def _same_in_pieces(self, channels: int) -> bool:
        frames = 6 * FIRST_PIECE
        latent = np.random.default_rng(0).standard_normal((1, channels, frames), np.float32)
        pieces = np.concatenate([piece for piece, _ in self.sound(Uttered(latent, None, None, 0))])
        once = self._piece(latent, 0, frames)
        return pieces.shape == once.shape == (frames * self._hop,) and bool(np.abs(pieces - once).max() < SAME)


def _with_durations(path: Path) -> Any:
    """The model (an onnx.ModelProto) with its phoneme durations as a second output, as far as they can be had.

    Without them the words' times are estimated. None if there is no such file or no package to read it with.
    """
    if not path.is_file():
        return None
    try:
        import onnx
        from piper.patch_voice_with_alignment import add_alignment_output
    except ImportError:
        return None
    try:
        model = onnx.load(str(path))
    except Exception as error:
        raise EngineError(
            "piper", "load", f"{path} is not a usable ONNX model (broken or cut off?): {error}"
        ) from error
    try:
        add_alignment_output(model)
    except ValueError:
        log.debug("the voice %s has durations already, or none to be had", path.name)
    return model


def _halves(model: Any) -> tuple[Any, Any]:
    """Both halves of the network as models of their own; raises ValueError where it has no such seam."""
    import onnx
    from onnx.utils import Extractor

    graph = model.graph
    seams = [node for node in graph.node if node.op_type == "Conv" and node.name.endswith("/dec/conv_pre/Conv")]
    if len(seams) != 1:
        raise ValueError("no decoder of a known kind")
    weights = next(tensor for tensor in graph.initializer if tensor.name == seams[0].input[1])
    latent = seams[0].input[0]
    shape = onnx.helper.make_tensor_value_info(latent, onnx.TensorProto.FLOAT, [1, weights.dims[1], None])
    described = onnx.ModelProto()
    described.CopyFrom(model)
    described.graph.value_info.append(shape)
    extractor = Extractor(described)
    outputs = [output.name for output in graph.output]
    front = extractor.extract_model([entry.name for entry in graph.input], [latent, *outputs[1:]])
    back = extractor.extract_model([latent], outputs[:1])
    return front, back
