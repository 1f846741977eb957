from __future__ import annotations

import fcntl
import os
import resource
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.cli.commands import append as line_source
from pylog.cli.commands.append import STANDARD_INPUT, LineSource
from pylog.cli.progress import Interruption

if TYPE_CHECKING:
    from pathlib import Path


def lines_of(path: Path | str) -> list[list[bytes]]:
    with LineSource(str(path), Interruption()) as source:
        return list(source)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"\n", [b""]),
        (b"a\r\n", [b"a\r"]),
        (b"only", [b"only"]),
    ],
)
@pytest.mark.parametrize("read_bytes", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_lines_are_those_of_the_file_however_it_is_read(
    tmp_path: Path,
    content: bytes,
    expected: list[bytes],
    read_bytes: int,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_source, "READ_BYTES", read_bytes)
    monkeypatch.setattr(line_source, "BYTES_AT_ONCE", at_once)
    path = tmp_path / "lines"
    path.write_bytes(content)
    parts = lines_of(path)
    assert [line for part in parts for line in part] == expected
    assert [] not in parts


def test_a_file_has_a_length_and_a_pipe_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    with LineSource(str(path), Interruption()) as source:
        assert source.total_bytes == 4
        list(source)
        assert source.read_bytes == 4
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "wb", buffering=0) as sending:
        monkeypatch.setattr(sys, "stdin", pipe)
        with LineSource(STANDARD_INPUT, Interruption()) as source:
            assert source.total_bytes is None
            lines = iter(source)
            sending.write(b"a\nb")
            assert next(lines) == [b"a"]  # though the pipe stays open
            sending.write(b"c\n")
            sending.close()
            assert next(lines) == [b"bc"]
            assert list(lines) == []


def test_closed_standard_input_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input is closed"):
        LineSource(STANDARD_INPUT, Interruption())


def test_a_process_may_have_thousands_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[0] != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2_000), limits[1]))
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, 1_500)  # select() knows those up to 1,023
    try:
        os.write(writing, b"a\nb\n")
        os.close(writing)
        with os.fdopen(high, closefd=False) as standard_input:
            monkeypatch.setattr(sys, "stdin", standard_input)
            found = [line for some in lines_of(STANDARD_INPUT) for line in some]
        assert found == [b"a", b"b"]
    finally:
        os.close(high)
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
