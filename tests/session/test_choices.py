from __future__ import annotations

import json

import pytest

from voice_agent.session.choices import read_choices


@pytest.mark.parametrize("speed", [f"1{'0' * 400}", f"-1{'0' * 4000}", "NaN", "1e999", "true", '"fast"', "0.1"])
def test_a_speed_nobody_can_speak_at_is_a_bad_message(speed: str) -> None:
    with pytest.raises(ValueError, match="speed"):
        read_choices({"speed": json.loads(speed)})
