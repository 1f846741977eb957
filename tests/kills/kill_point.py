"""A chosen system call at which a process, or what it runs for, is killed.

Whatever changes a disk goes through `pylog.files.system_calls.SystemCalls`. There the calls are
counted while a step runs, and in place of the chosen one SIGKILL is sent; a write may be made by
half before. So a seed decides where a kill falls, and not how fast a machine is.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pylog.files.system_calls import SystemCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANGING_CALLS = (
    *("open_to_write", "pwrite", "ftruncate", "fsync", "rename"),
    *("unlink", "mkdir", "rmdir", "fsync_directory"),
)


class Victim(StrEnum):
    """Who is killed when a process makes the chosen call."""

    PROCESS = "process"
    EXECUTOR = "executor and process"
    JVM = "JVM, and not at once the process"
    DRIVER = "driver and all it started"


@dataclass(frozen=True, slots=True)
class KillPoint:
    """When to kill whom.

    Attributes
    ----------
    note
        A file that gets a line for each kill: who, and at which call.
    step
        What the process is about when it is killed: ``write``, ``commit`` or ``abort``.
    call
        The n-th call of the step that changes the disk, from 1. None is reached with 0: the note
        gets the number of calls that there were.
    victim
        Who is killed.
    times
        After so many kills, none follows: later attempts get through.
    """

    note: str
    step: str
    call: int
    victim: Victim = Victim.PROCESS
    times: int = 1

    def to_json(self) -> str:
        """Return the text of it, for the option of a data source or for a pipe."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> KillPoint:
        """Return what `to_json` was called of."""
        fields = json.loads(text)
        return cls(**{**fields, "victim": Victim(fields["victim"])})

    def lines(self) -> list[str]:
        """Return what the note says."""
        path = Path(self.note)
        return path.read_text("utf-8").splitlines() if path.exists() else []

    @contextmanager
    def armed(self, step: str) -> Iterator[None]:
        """Count the calls of this process within the block, and kill at the chosen one."""
        if step != self.step or (self.call and len(self.lines()) >= self.times):
            yield
            return
        counter = _Counter(self)
        originals = {name: getattr(SystemCalls, name) for name in CHANGING_CALLS}
        for name, original in originals.items():
            setattr(SystemCalls, name, counter.counted(name, original))
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(SystemCalls, name, original)
            if not self.call:
                self.write(f"{step}: {counter.count} calls")

    def write(self, line: str) -> None:
        """Add a line to the note, as a whole."""
        descriptor = os.open(self.note, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)


class _Counter:
    """The calls of one armed step."""

    def __init__(self, point: KillPoint) -> None:
        self.count = 0
        self._point = point

    def counted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a system call that is counted, and may be the last one."""

        def call(io: SystemCalls, path: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            self.count += 1
            if self.count == self._point.call:
                if name == "pwrite" and self.count % 2:
                    descriptor, position, data = arguments
                    original(io, path, descriptor, position, data[: len(data) // 2])
                point = self._point
                point.write(f"{point.victim} in {point.step}: {name} {Path(path).suffix}")
                kill(point.victim)
            return original(io, path, *arguments, **options)

        return call


def kill(victim: Victim) -> None:
    """Kill, by SIGKILL, this process or others; returns for `Victim.JVM` alone."""
    own = psutil.Process()
    if victim is Victim.DRIVER:
        kill_session(os.getsid(0), but=own.pid)
    elif victim is not Victim.PROCESS:
        next(each for each in own.parents() if each.name() == "java").kill()
    if victim is not Victim.JVM:
        os.kill(own.pid, signal.SIGKILL)


def kill_session(session: int, but: int | None = None) -> None:
    """Kill all processes of a session: Spark's Python workers have process groups of their own."""
    for process_id in psutil.pids():
        try:
            if process_id != but and os.getsid(process_id) == session:
                os.kill(process_id, signal.SIGKILL)
        except ProcessLookupError:
            continue
