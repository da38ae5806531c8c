from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.modelstore.serving import Server, serve


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # A proxy of this machine must not come between the test and 127.0.0.1.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve() as running:
        yield running
