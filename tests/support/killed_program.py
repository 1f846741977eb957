"""A program in a process of its own that is killed while it works."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from pylog.files.durable_io import DurableIO

if TYPE_CHECKING:
    from collections.abc import Callable

_CRASHED = 9
_STEPS: list[tuple[object, str]] = [
    *((DurableIO, "replace"), (DurableIO, "write_atomically"), (DurableIO, "make_directory")),
    *((DurableIO, "sync_directory"), (os, "unlink"), (os, "rmdir")),
]
_READY = "ready"
_DONE = "done"


def is_done_when_killed(seconds: float, prepare: str, work: str, *arguments: object) -> bool:
    """Run Python code, and kill its process some time after ``work`` has begun.

    ``prepare`` is what the process does first, such as imports; both find the arguments in
    ``sys.argv``. Return whether the work was done before the kill.
    """
    lines = ["import sys", prepare, f"print({_READY!r}, flush=True)", "sys.stdin.readline()"]
    code = "\n".join([*lines, work, f"print({_DONE!r}, flush=True)"])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == f"{_READY}\n".encode()
        process.stdin.write(b"\n")
        process.stdin.flush()
        time.sleep(seconds)
        process.kill()
        is_done = process.stdout.readline() == f"{_DONE}\n".encode()
    assert process.returncode in {0, -signal.SIGKILL}, "the work has failed by itself"
    return is_done


def crashed_at(step: int, do: Callable[[], object]) -> bool:
    """Do something in a process that ends at a step on the disk; return whether it came to it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _CRASHED
    left = itertools.count(step, -1)
    for owner, name in _STEPS:
        plain = getattr(owner, name)

        def ending(
            *arguments: object, plain: Callable[..., object] = plain, **more: object
        ) -> object:
            if next(left) <= 0:
                os._exit(_CRASHED)
            return plain(*arguments, **more)

        setattr(owner, name, ending)
    try:
        do()
    finally:
        os._exit(0)
