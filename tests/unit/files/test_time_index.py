from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.files.time_index import TimeIndexEntries
from pylog.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from pathlib import Path

# Written by a 4.3.0 broker, base offset 0.
REAL_INDEX = bytes.fromhex(
    "0000018edd9f8363000000050000018edd9fa0f60000000a000001a1fb7260f80000000b000001a1fb72611e00000013"
)
REAL_ENTRIES = [
    (1713115202403, 5),
    (1713115209974, 10),
    (1795219939576, 11),
    (1795219939614, 19),
]
# The start of a preallocated index of base offset 105 as SIGKILL left it.
PREALLOCATED = bytes.fromhex("0000019077fd54d400000001") + bytes(4080)


@pytest.fixture
def index(tmp_path: Path) -> TimeIndexEntries:
    path = tmp_path / "00000000000000000000.timeindex"
    path.write_bytes(REAL_INDEX)
    return TimeIndexEntries.open(path, 0)


def test_entries_are_those_a_broker_dumps(index: TimeIndexEntries) -> None:
    assert list(index) == REAL_ENTRIES
    assert index.last_entry() == REAL_ENTRIES[-1]
    assert index.find_defect() is None


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (NO_TIMESTAMP, (NO_TIMESTAMP, 0)),
        (1713115202402, (NO_TIMESTAMP, 0)),
        (1713115202403, (1713115202403, 5)),
        (1713115209973, (1713115202403, 5)),
        (1795219939613, (1795219939576, 11)),
        (2**63 - 1, (1795219939614, 19)),
    ],
)
def test_lookup_is_the_entry_at_or_below_the_timestamp(
    index: TimeIndexEntries, timestamp: int, expected: tuple[int, int]
) -> None:
    assert index.lookup(timestamp) == expected


def test_zero_tail_of_a_killed_broker_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000105.timeindex"
    path.write_bytes(PREALLOCATED)
    index = TimeIndexEntries.open(path, 105)
    assert list(index) == [(1720000009428, 106)]
    assert index.slot_count == 341


def test_impossible_entry_sends_the_reader_to_the_segment_start(tmp_path: Path) -> None:
    path = tmp_path / "x.timeindex"
    path.write_bytes(bytes.fromhex("0000000000000005fffffff0"))
    assert TimeIndexEntries.open(path, 100).lookup(500) == (NO_TIMESTAMP, 100)
