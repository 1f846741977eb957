"""Compacts in children that kill themselves: ``python -m tests.crash.compaction_worker DIRECTORY``.

For each number N that comes in by a line, a child does the job and is gone, by SIGKILL, after its
Nth change of the disk, as `RecordingIO` counts them. Then ``killed`` goes out, or ``done`` if there
were fewer.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.crash.compaction_script import run
from tests.support.recording_io import Operation, RecordingIO


class _Last(list[Operation]):
    """A diary whose writer is killed after an entry."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def append(self, operation: Operation) -> None:
        super().append(operation)
        if len(self) == self._count:
            os.kill(os.getpid(), signal.SIGKILL)


def main(directory: Path) -> None:
    """Serve until there are no more lines."""
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            io = RecordingIO(directory)
            io.operations = _Last(int(line))
            run(directory, io)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write("killed\n" if os.WIFSIGNALED(status) else "done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
