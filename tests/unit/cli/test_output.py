from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest

from pylog.cli.output import wrapped, write_whole


class BareFile(io.RawIOBase):
    """A file that takes at most 7 bytes at once, as an unbuffered pipe may."""

    def __init__(self) -> None:
        super().__init__()
        self.content = b""

    def writable(self) -> bool:
        return True

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self.content += bytes(data[:7])
        return min(7, len(data))


class FullPipe(BareFile):
    """A pipe that is full, and not waited for."""

    def write(self, data: memoryview) -> None:  # type: ignore[override]
        return None


def test_what_a_file_does_not_take_at_once_is_written_afterwards() -> None:
    file = BareFile()
    write_whole(file, memoryview(bytes(range(100))))  # type: ignore[arg-type]
    assert file.content == bytes(range(100))


def test_a_long_line_goes_on_below_with_its_own_indent_and_paths_stay_whole() -> None:
    line = "  copy: /logs/a-very-long-name and more"
    assert wrapped(line, None) == [line]
    assert wrapped(line, 16) == ["  copy:", "    /logs/a-very-long-name", "    and more"]


def test_output_that_is_not_waited_for_is_an_error() -> None:
    with pytest.raises(BlockingIOError, match="temporarily unavailable"):
        write_whole(FullPipe(), memoryview(b"x"))  # type: ignore[arg-type]


def test_nothing_is_written_without_bytes() -> None:
    file = BareFile()
    write_whole(file, memoryview(b""))  # type: ignore[arg-type]
    assert file.content == b""


def test_a_full_disk_is_that_of_the_output() -> None:
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match="No space left on device") as raised,
    ):
        write_whole(full, memoryview(b"x"))
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "standard output")
