from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest

from pylog.cli.output import tell, wrapped, write_summary, write_whole


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


class Terminal(io.StringIO):
    """A terminal, as wide as the environment says."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("COLUMNS", "30")
    return monkeypatch


def test_a_terminal_wraps_what_was_done_but_not_what_people_copy(
    narrow: pytest.MonkeyPatch,
) -> None:
    narrow.setattr("sys.stdout", screen := Terminal())
    command = "  1. mv /mnt/kafka/orders-0 /mnt/kafka/aside && cp -a copy /mnt/kafka"
    lines = ["orders-0: from /mnt/old/orders-0, to offset 20", "", "done"]
    write_summary({}, lines, as_json=False, copied=[command])
    assert screen.getvalue().split("\n") == [
        *("orders-0: from", "  /mnt/old/orders-0, to offset", "  20", "", "done"),
        *(command, ""),
    ]


def test_a_file_gets_whole_lines(
    narrow: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "orders-0: from /mnt/old/orders-0, to offset 20, on node 7"
    write_summary({}, [line], as_json=False)
    tell("note", line)
    assert capsys.readouterr() == (f"{line}\n", f"pylog: note: {line}\n")


def test_a_terminal_wraps_notes(narrow: pytest.MonkeyPatch) -> None:
    narrow.setattr("sys.stderr", screen := Terminal())
    tell("note", "the metadata of the cluster is on no disk", "short")
    assert screen.getvalue() == (
        "pylog: note: the metadata of\n  the cluster is on no disk\npylog: note: short\n"
    )


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
