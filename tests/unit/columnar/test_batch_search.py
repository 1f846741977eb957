"""Batches without the bytes that are looked for are not decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.unit.reading.searched import offsets_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_keys_without_the_bytes_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [
        batch_v2([Stored(at, 1, b"user-%d" % at, b"v"), Stored(at + 1, 1, b"k", b"v")], codec=codec)
        for at, codec in zip((0, 2, 4, 6), ["none", "zstd", "none", "zstd"], strict=True)
    ]
    write_partition(tmp_path, {0: batches})
    seen: list[object] = []
    holds = pylog.reading.record_filter.Contains.holds

    def noted(self: Any, key: object) -> bool:  # noqa: ANN401
        seen.append(key)
        return holds(self, key)

    monkeypatch.setattr("pylog.reading.record_filter.Contains.holds", noted)
    assert offsets_of(pylog.search(tmp_path, key_contains="r-6")) == [6]
    assert seen == [b"user-6"]
