"""Bytes to standard output, all of them.

Where Python does not buffer its output (``PYTHONUNBUFFERED``, ``python -u``), ``sys.stdout.buffer``
is the bare file, and a write to that may take a part of what it is given.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO


def write_whole(output: BinaryIO, content: memoryview) -> None:
    """Write all of ``content``, in as many pieces as ``output`` takes it in."""
    try:
        while len(content):
            written: int | None = output.write(content)
            if written is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            content = content[written:]
    except OSError as error:
        # So that a full disk is not taken for that of the logs.
        error.filename = "standard output"
        raise
