"""What may lie where a file is expected: other kinds of files, and files of wrong content."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

IRREGULAR = ("fifo", "directory", "socket", "zeros", "random")
LINKS = ("circular link", "broken link")
NOT_READABLE = (*IRREGULAR, *LINKS, *(("forbidden",) if os.geteuid() else ()))
"""Kinds that no reader gets a byte of; root gets those of every regular file."""
CONTENTS = ("empty", "cut", "garbage", "sparse")
KINDS = (*CONTENTS, *NOT_READABLE)

SPARSE_BYTES = 2 << 30


def put(path: Path, kind: str) -> None:
    """Put something odd in the place of the file at ``path``, if there is one."""
    content = path.read_bytes() if path.is_file() else b""
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        _bind(path)
    elif kind in {"zeros", "random"}:
        path.symlink_to("/dev/zero" if kind == "zeros" else "/dev/urandom")
    elif kind in LINKS:
        path.symlink_to(path if kind == "circular link" else path.with_suffix(".nowhere"))
    elif kind == "forbidden":
        path.write_bytes(content)
        path.chmod(0)
    else:
        path.write_bytes({"cut": content[:-3], "garbage": b"\xff" * 100}.get(kind, b""))
        if kind == "sparse":
            os.truncate(path, SPARSE_BYTES)


def _bind(path: Path) -> None:
    """Make a socket; its name may be longer than a socket's address by way of its directory."""
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


@contextmanager
def deadline(directory: Path, seconds: int = 20) -> Iterator[None]:
    """Fail what takes longer, instead of waiting for ever; frees whoever waits for a FIFO."""

    def fail(*_: object) -> None:
        for found in directory.rglob("*"):
            if found.is_fifo():
                os.open(found, os.O_RDWR | os.O_NONBLOCK)
        msg = f"takes more than {seconds} s"
        raise TimeoutError(msg)

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def remove(path: Path) -> None:
    """Remove a file, link or directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
