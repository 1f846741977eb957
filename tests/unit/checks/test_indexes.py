"""The columns of an index that a broker is writing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pylog.checks import indexes as index_columns
from pylog.checks.indexes import read_offset_index, read_time_index

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TAIL = bytes(240)


def offset_entry(relative_offset: int, position: int) -> bytes:
    return relative_offset.to_bytes(4, "big") + position.to_bytes(4, "big")


def test_an_entry_of_which_a_broker_has_written_half_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{100:020d}.index"
    path.write_bytes(offset_entry(10, 500) + offset_entry(20, 0) + TAIL)

    def write_the_rest(seconds: float) -> None:
        path.write_bytes(offset_entry(10, 500) + offset_entry(20, 900) + TAIL)

    monkeypatch.setattr(time, "sleep", write_the_rest)
    columns = read_offset_index(str(path), 100)
    assert columns.defect is None
    assert columns.offsets.tolist() == [110, 120]
    assert columns.values.tolist() == [500, 900]


def test_an_entry_that_stays_half_written_is_a_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{100:020d}.index"
    path.write_bytes(offset_entry(10, 500) + offset_entry(20, 0) + TAIL)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    defect = read_offset_index(str(path), 100).defect
    assert defect == "entry 1 is (120, 0), expected both above (110, 500)"
    assert pauses == [*index_columns.LIVE_PAUSES]


def test_half_an_entry_of_a_time_index_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / f"{100:020d}.timeindex"
    whole = (7_000).to_bytes(8, "big") + (10).to_bytes(4, "big")
    path.write_bytes(whole + (8_000).to_bytes(8, "big") + bytes(4) + TAIL)
    columns = read_time_index(str(path), 100)
    assert columns.defect is None
    assert columns.offsets.tolist() == [110]
