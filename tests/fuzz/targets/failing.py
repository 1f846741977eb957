"""A target that fails, to test that a failure is reported. None of `tests.fuzz.targets.TARGETS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 10


def check(data: bytes, file: Path) -> None:
    assert data[:1] != b"!", "it does not like this byte"


def seeds() -> Iterator[bytes]:
    yield b"?"


def golden_seeds() -> Iterator[bytes]:
    yield from ()
