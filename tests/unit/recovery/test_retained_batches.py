"""Batches that a range begins or ends in, read by the tests' own parser."""

from __future__ import annotations

import pytest

from pylog.record.batch_scan import Window, find_batches
from pylog.recovery.retained_batches import BatchSelection, RetainedBatches
from tests.support.batch_parser import ParsedBatch, split_batches
from tests.support.batches import Built, batch_v2, joined, message, plain_records, wrapper
from tests.support.reading import as_buffer

LAST_SEQUENCE = 2**31 - 1


def produced(start: int, count: int = 5, *, sequence: int = 100, codec: str = "none") -> Built:
    return batch_v2(
        plain_records(start, count),
        producer_id=7,
        producer_epoch=3,
        base_sequence=sequence,
        leader_epoch=4,
        codec=codec,
    )


def selected(
    batches: list[Built], start: int | None, end: int | None
) -> tuple[list[RetainedBatches], list[ParsedBatch]]:
    window = Window.of(find_batches(as_buffer(joined(batches))))
    parts = [
        part._replace(data=memoryview(bytes(part.data)))
        for part in BatchSelection(start, end).select(window)
    ]
    for part in parts:
        sizes = part.headers.sizes_bytes.tolist()
        assert part.headers.positions.tolist() == [sum(sizes[:at]) for at in range(len(sizes))]
        assert sum(sizes) == len(part.data)
    data = b"".join(part.data for part in parts)
    return parts, [ParsedBatch.of(each) for each in split_batches(data)]


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
@pytest.mark.parametrize(
    ("start", "end", "firsts", "rewritten"),
    [
        (None, None, [0, 5, 10], []),
        (0, 15, [0, 5, 10], []),
        (1, None, [1, 5, 10], [0]),
        (4, 15, [4, 5, 10], [0]),
        (None, 14, [0, 5, 10], [2]),
        (2, 13, [2, 5, 10], [0, 2]),
    ],
)
def test_only_batches_that_are_cut_are_written_anew(
    start: int | None, end: int | None, firsts: list[int], rewritten: list[int], codec: str
) -> None:
    batches = [produced(at, sequence=100 + at, codec=codec) for at in (0, 5, 10)]
    parts, found = selected(batches, start, end)
    assert [each.base_offset for each in found] == firsts
    assert [each.base_sequence for each in found] == [100 + each for each in firsts]
    for at, each in enumerate(found):
        assert (each.data != batches[at].data) is (at in rewritten)
        assert (each.producer_id, each.producer_epoch, each.leader_epoch) == (7, 3, 4)
        assert each.codec == codec
    offsets = [record.offset for each in found for record in each.records()]
    assert offsets == list(range(start or 0, 15 if end is None else end))
    assert found[-1].last_offset == offsets[-1]
    assert sum(len(part.headers) for part in parts if part.is_rewritten) == len(rewritten)
    assert sum(part.left_out + part.left_out_of_transactions for part in parts) == 0


@pytest.mark.parametrize(
    ("sequence", "cut", "expected"),
    [
        (100, 2, 102),
        (LAST_SEQUENCE, 1, 0),  # it goes on at 0
        (LAST_SEQUENCE - 1, 1, LAST_SEQUENCE),
        (-1, 3, -1),
    ],
)
def test_the_sequence_number_is_that_of_the_first_record_that_stays(
    sequence: int, cut: int, expected: int
) -> None:
    _, [found] = selected([produced(0, sequence=sequence)], cut, None)
    assert (found.base_offset, found.base_sequence) == (cut, expected)


def test_a_batch_of_which_the_range_has_no_record_keeps_its_header_if_it_begins_in_it() -> None:
    """As a cleaning has left it: producers and offsets are known from the header."""
    sparse = batch_v2(
        [plain_records(4, 1)[0]],
        base_offset=0,
        last_offset=9,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    for start, end, bounds in ((0, 3, (0, 2)), (6, 9, (6, 8)), (0, 4, (0, 3))):
        _, [found] = selected([sparse], start, end)
        assert (found.base_offset, found.last_offset, found.record_count) == (*bounds, 0)
        assert (found.producer_id, found.codec) == (7, "none")
    assert selected([sparse], 6, 10)[1] == []


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("start", "end"), [(2, None), (None, 3), (1, 4)])
def test_old_formats_become_v2_where_they_are_cut(
    magic: int, start: int | None, end: int | None
) -> None:
    _, found = selected([wrapper(plain_records(0, 5), magic=magic, codec="gzip")], start, end)
    records = [record for each in found for record in each.records()]
    assert [each.offset for each in records] == list(range(start or 0, end or 5))
    expected = plain_records(0, 5)[start or 0 : end or 5]
    assert [(each.key, each.value) for each in records] == [
        (each.key, each.value) for each in expected
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_single_messages_in_the_range_stay_as_they_are(magic: int) -> None:
    batches = [message(each, magic=magic) for each in plain_records(0, 3)]
    window = Window.of(find_batches(as_buffer(joined(batches))))
    parts = list(BatchSelection(0, 3).select(window))
    assert b"".join(part.data for part in parts) == joined(batches)
    assert not any(part.is_rewritten for part in parts)


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_that_nothing_cuts_stay_as_they_are(magic: int) -> None:
    batches = [wrapper(plain_records(at, 5), magic=magic, codec="gzip") for at in (0, 5, 10)]
    window = Window.of(find_batches(as_buffer(joined(batches))))
    for chosen in (slice(0, 3), slice(1, 3)):
        parts = list(BatchSelection(None, None).select(window.select(chosen)))
        assert b"".join(part.data for part in parts) == joined(batches[chosen])
        assert not any(part.is_rewritten for part in parts)
    parts = list(BatchSelection(None, 12).select(window))
    assert [part.is_rewritten for part in parts] == [False, True]
