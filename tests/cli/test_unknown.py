from __future__ import annotations

import pytest

from voice_agent.cli.main import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("serve --prot 9000", "did you mean --port?"),
        ("serve --system_prompt x", "did you mean --system-prompt?"),
        ("serve --min-delay 0.4", "write --set min_delay=VALUE"),
        ("serve --min-delay=0.4", "write --set min_delay=0.4"),
        ("serve --min-delya 0.4", "did you mean --set min_delay=VALUE?"),
        ("serve --utter-nonsense", "`voice-agent serve --help` lists all"),
        ("serve extra", "extra is one word too many"),
        ("config show --profil small", "there is no option --profil"),
    ],
)
def test_unknown_arguments_are_told_by_the_command_with_the_nearest_spelling(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split(), {}) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
