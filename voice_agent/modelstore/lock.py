"""One process at a time writes into a store; readers need no lock because files appear whole."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = ".lock"


@contextmanager
def store_lock(root: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the store below `root`, waiting for another process if need be.

    `on_wait` is called once, with a sentence, before the waiting begins. The lock is the kernel's (flock): it is gone
    with the process that held it, however that ended, so there is no stale lock to clean up.
    Raises OSError where the folder cannot be written or the file system has no locks.
    """
    descriptor = os.open(root / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            named = f" (process {holder})" if holder.isdigit() else ""
            on_wait(f"another pull{named} is filling {root}: waiting for it to end.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
