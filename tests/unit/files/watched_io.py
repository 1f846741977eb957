"""System calls that do only parts of what they are asked for."""

from __future__ import annotations

from tests.support.recording_io import Kind

OLD, NEW = b"what was there before\n", b"new\n"
WRITES = frozenset({Kind.WRITE})
