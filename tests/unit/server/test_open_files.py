"""How many connections and segments a limit of open files has room for."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from pylog.server.open_files import divided, make_room

if TYPE_CHECKING:
    import pytest


def test_connections_never_take_what_segments_need() -> None:
    for most in (64, 100, 256, 1_024, 4_096, 100_000):
        room = divided(most, 2_000)
        assert room.segments >= 16
        assert room.connections >= 1
        if most >= 256:
            # Segments twice: those that are kept, and those that are being sent.
            assert room.connections + 2 * room.segments + 64 <= most
    assert divided(100_000, 2_000) == (2_000, 400)
    assert divided(resource.RLIM_INFINITY, 2_000) == (2_000, 400)


def test_the_limit_is_raised_where_the_system_lets_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits = [(1_024, 500_000)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, each: limits.append(each))
    assert make_room(2_000) == (2_000, 400)
    assert limits[-1] == (4_864, 500_000)
    limits.append((1_024, 1_024))
    assert make_room(2_000) == (480, 240)
    (told,) = caplog.messages
    assert told == (
        "at most 480 connections are accepted, not 2000: the process may have 1024 files open; "
        "raise the limit (ulimit -n 4864)"
    )
