"""What is fuzzed, a module a target.

Every module has

``check(data, file)``
    Raises `AssertionError`, or whatever ``pylog`` raises that it must not, if ``data`` is read
    wrongly. ``file`` is a path that it may write to.
``seeds()``
    Inputs from which the fuzzer starts, built by the tests.
``golden_seeds()``
    The same from files that brokers wrote.
``MAX_BYTES``
    Length of the largest input worth trying.

The first bytes of an input say what is done with the rest, so that the fuzzer chooses that too.
Only `load` imports a target: what it imports can then be instrumented.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TARGETS = ("batch", "legacy", "index", "txnindex", "snapshot", "checkpoint", "internal_topics")


class Target(Protocol):
    """A module of this package."""

    MAX_BYTES: int

    def check(self, data: bytes, file: Path) -> None: ...

    def seeds(self) -> Iterator[bytes]: ...

    def golden_seeds(self) -> Iterator[bytes]: ...


def load(name: str) -> Target:
    """Return the target of that name."""
    return cast("Target", importlib.import_module(f"{__name__}.{name}"))
