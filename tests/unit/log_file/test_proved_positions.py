"""Which entries of an offset index count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pylog.files.byte_source import LocalFile
from pylog.files.offset_index import OffsetIndexEntries
from pylog.log_file.proved_positions import LEAST_WALK_BYTES, ProvedPosition, ProvedPositions
from tests.support.batches import (
    Built,
    batch_v2,
    joined,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.damage import positions, with_base_offset, with_size
from tests.support.images import chain, holding
from tests.support.log_files import offset_entries, offset_index_bytes, segment_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Each fills more than an interval of a broker's index.
BATCHES = [batch_v2(plain_records(offset, 3, value_size=1_500)) for offset in range(0, 36, 3)]
STARTS = positions(BATCHES)
HONEST = offset_entries(BATCHES)
"""(last offset, position) of every batch but the first."""


class Log:
    """One segment with an index of these entries."""

    def __init__(self, directory: Path) -> None:
        self._log = segment_path(directory, 0)
        self._index = segment_path(directory, 0, ".index")

    def are_proved(
        self, batches: Sequence[Built], entries: Sequence[tuple[int, int]], tail: bytes = b""
    ) -> list[bool]:
        return [found is not None for found in self.proved_positions(batches, entries, tail)]

    def proved_positions(
        self, batches: Sequence[Built], entries: Sequence[tuple[int, int]], tail: bytes = b""
    ) -> list[ProvedPosition | None]:
        with self.open(batches, entries, tail) as positions_of:
            return [positions_of.prove(slot) for slot in range(len(entries))]

    def open(
        self, batches: Sequence[Built], entries: Sequence[tuple[int, int]], tail: bytes = b""
    ) -> _Opened:
        self._log.write_bytes(joined(batches) + tail)
        self._index.write_bytes(offset_index_bytes(entries, 0))
        return _Opened(str(self._log), str(self._index))


class _Opened:
    def __init__(self, log: str, index: str) -> None:
        self._source, self._index = LocalFile(log), OffsetIndexEntries.open(index, 0)

    def __enter__(self) -> ProvedPositions:
        start = ProvedPosition(0, 0)
        return ProvedPositions(self._source, self._index, start, self._source.size())

    def __exit__(self, *_: object) -> None:
        self._source.close()
        self._index.close()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_every_entry_of_a_broker_is_proved_with_the_offset_after_the_batch_before(
    log: Log,
) -> None:
    found = log.proved_positions(BATCHES, HONEST)
    expected = zip(STARTS[1:], range(3, 36, 3), strict=False)
    assert found == [ProvedPosition(at, lowest) for at, lowest in expected]


@pytest.mark.parametrize("every", [1, 2, 5])
def test_entries_are_proved_however_far_apart_they_are(log: Log, every: int) -> None:
    entries = offset_entries(BATCHES, every=every)
    assert log.are_proved(BATCHES, entries) == [True] * len(entries)


def test_first_offsets_and_last_ones_of_what_was_appended_are_proved(log: Log) -> None:
    first = offset_entries(BATCHES, first_offsets=True)
    assert log.are_proved(BATCHES, first) == [True] * len(first)
    # Two batches were appended at a time: the position of the first, the last offset of the second.
    sets = [(BATCHES[place + 1].last_offset, STARTS[place]) for place in range(2, 12, 2)]
    assert log.are_proved(BATCHES, sets) == [True] * len(sets)


def test_entries_of_old_formats_are_proved(log: Log) -> None:
    batches = [
        message(plain_records(0, 1)[0], magic=0),
        wrapper(plain_records(1, 4), magic=1, codec="gzip"),
        message(plain_records(5, 1, value_size=9_000)[0], magic=1),
        wrapper(plain_records(6, 4), magic=0, codec="gzip"),
        batch_v2(plain_records(10, 2)),
    ]
    for first_offsets in (True, False):
        entries = offset_entries(batches, first_offsets=first_offsets)
        assert log.are_proved(batches, entries) == [True] * len(entries)


@pytest.mark.parametrize("slot", range(len(HONEST)))
@pytest.mark.parametrize("shift", [-61, -1, 1, 40])
def test_an_entry_that_leads_elsewhere_proves_nothing_and_costs_its_neighbours(
    log: Log, slot: int, shift: int
) -> None:
    entries = list(HONEST)
    offset, position = entries[slot]
    entries[slot] = offset, position + shift
    found = log.are_proved(BATCHES, entries)
    assert not found[slot]
    assert all(found[: max(0, slot - 1)])
    assert all(found[slot + 3 :])


@pytest.mark.parametrize("offset", [-40, 8, 13, 2_000])
def test_an_entry_with_an_offset_that_its_batch_does_not_have_is_not_proved(
    log: Log, offset: int
) -> None:
    entries = list(HONEST)
    entries[2] = offset, entries[2][1]
    assert not log.are_proved(BATCHES, entries)[2]


def test_an_entry_before_or_after_what_is_damaged_is_not_proved(log: Log) -> None:
    for damaged in (with_size(BATCHES[5], 1_000), with_base_offset(BATCHES[5], 1)):
        batches = [*BATCHES[:5], damaged, *BATCHES[6:]]
        found = log.are_proved(batches, HONEST)
        assert found[:3] == [True] * 3
        assert not any(found[4:6])
        assert all(found[8:])


def test_a_wrong_checksum_is_left_to_who_reads_the_batch(log: Log) -> None:
    batches = [*BATCHES[:5], with_bad_crc(BATCHES[5]), *BATCHES[6:]]
    assert all(log.are_proved(batches, HONEST))


def test_entries_around_offsets_that_go_back_are_not_proved(log: Log) -> None:
    batches = [*BATCHES[:4], with_base_offset(BATCHES[4], 1), *BATCHES[5:]]
    entries = offset_entries(BATCHES, every=3)
    assert log.are_proved(batches, entries) == [False, False, True]


@pytest.mark.parametrize("to_the_end", [True, False])
@pytest.mark.parametrize("count", range(1, 6))
@pytest.mark.parametrize("place", [0, 1, 6, 11])
@pytest.mark.parametrize("first", [0, -4, 3])
def test_images_of_batches_are_never_proved(
    log: Log, place: int, count: int, first: int, *, to_the_end: bool
) -> None:
    outer = BATCHES[place]
    images = chain(max(0, outer.base_offset + first), count)
    batches = list(BATCHES)
    batches[place] = holding(outer.records, images, to_the_end=to_the_end)
    at = positions(batches)[place] + batches[place].data.index(images[0].data[:-1])
    lies = []
    for image in images:
        lies.append((image.base_offset, at))
        at += len(image.data)
    honest = offset_entries(batches)
    for entries in (lies, lies[:1], lies[-1:], sorted({*honest, *lies})):
        found = log.proved_positions(batches, entries)
        starts = positions(batches)
        assert all(
            proved_positions is None or proved_positions.position in starts
            for proved_positions in found
        )


def test_a_chain_of_images_that_is_proved_is_longer_than_a_walk(log: Log) -> None:
    # docs/guarantees.md: neighbouring entries that all lie into one chain, and more than that.
    images = chain(7, 200)
    size = len(images[0].data)
    outer = holding(plain_records(3, 3), images, to_the_end=True)
    batches = [BATCHES[0], outer, batch_v2(plain_records(300, 1))]
    at = len(BATCHES[0].data) + outer.data.index(images[0].data[:-1])
    lies = [(7 + place, at + place * size) for place in range(200)]
    found = log.are_proved(batches, lies)
    first = found.index(True)
    assert lies[first][1] - lies[0][1] >= LEAST_WALK_BYTES
    assert not any(log.are_proved(batches, lies[: LEAST_WALK_BYTES // size]))


TORN = batch_v2(plain_records(36, 3)).data
TAILS = {
    "nothing": (b"", True),
    "zeros": (bytes(500), True),
    "a batch cut in its records": (TORN[:-1], True),
    "a batch cut in its header": (TORN[:20], True),
    "an offset": (TORN[:8], True),
    "less than an offset": (TORN[:7], False),
    "one byte": (b"\x00", False),
    "another offset": (batch_v2(plain_records(37, 3)).data[:-1], False),
    "something else": (b"\xff" * 100, False),
}


@pytest.mark.parametrize(("tail", "is_end"), TAILS.values(), ids=TAILS)
def test_the_last_entry_is_proved_where_a_log_may_end(
    log: Log, tail: bytes, *, is_end: bool
) -> None:
    found = log.are_proved(BATCHES, HONEST, tail)
    assert found[-1] == is_end
    assert all(found[:-1])
    with log.open(BATCHES, HONEST, tail) as positions_of:
        assert positions_of.last().position == STARTS[-2 if is_end else -3]


def test_an_index_may_know_of_more_than_is_looked_at(log: Log) -> None:
    with log.open(BATCHES[:7], HONEST) as positions_of:
        assert positions_of.last() == ProvedPosition(STARTS[6], 18)
        assert positions_of.before_offset(20) == ProvedPosition(STARTS[6], 18)
        # All that is looked at is below.
        assert positions_of.before_offset(35) == ProvedPosition(STARTS[7], 21)


def test_a_batch_that_is_not_there_in_whole_yet_is_not_the_last_one(log: Log) -> None:
    for cut in (1, 30, 70, len(BATCHES[7].data) - 1):
        data = BATCHES[7].data[:cut]
        with log.open(BATCHES[:7], HONEST[:7], tail=data) as positions_of:
            assert positions_of.last() == ProvedPosition(STARTS[6], 18)


@pytest.mark.parametrize("offset", range(36))
def test_the_position_before_an_offset_is_that_of_the_nearest_entry(log: Log, offset: int) -> None:
    with log.open(BATCHES, HONEST) as positions_of:
        found = positions_of.before_offset(offset)
    # The first entry is that of the second batch, with its last offset.
    assert found.position == (STARTS[offset // 3] if offset >= 5 else 0)


def test_a_position_near_damage_is_the_last_one_proved_before(log: Log) -> None:
    entries = [*HONEST[:6], *((offset, at + 5) for offset, at in HONEST[6:])]
    with log.open(BATCHES, entries) as positions_of:
        found = positions_of.before_offset(35)
    # Each look goes back twice as far as the one before; the walk on goes to the next entry.
    assert found.position in STARTS[2:7]


def test_few_bytes_are_read_however_many_entries_there_are(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = batch_v2(plain_records(0, 4, value_size=60))
    batches, offset = [], 0
    for _ in range(3_000):
        data = offset.to_bytes(8, "big") + small.data[8:]
        batches.append(replace(small, data=data, base_offset=offset, last_offset=offset + 3))
        offset += 4
    entries = offset_entries(batches, every=4_200 // len(small.data))
    read = 0
    read_at = LocalFile.read_at

    def counted(self: LocalFile, position: int, length: int) -> bytes:
        nonlocal read
        data = read_at(self, position, length)
        read += len(data) if self.path.endswith(".log") else 0
        return data

    monkeypatch.setattr(LocalFile, "read_at", counted)
    with log.open(batches, entries) as positions_of:
        assert positions_of.before_offset(7_000).position > 0
    assert read < 6 * 4_200
