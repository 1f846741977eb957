"""Facts about records, by the kernel and by the plain decoder: against what was written."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.record.batch_header import parse_batch_header
from pylog.record.compression import Decompressor
from pylog.validation import record_summary
from pylog.validation.record_summary import RecordSummary
from tests.support.batches import Stored, batch_v2_of, record_v2

BASE_TIMESTAMP = 1_000_000
BY_KERNEL, BY_PLAIN_DECODER = 0, 2**31


def summarize(
    payload: bytes, count: int, way: int = BY_KERNEL, attributes: int = 0
) -> RecordSummary | None:
    """Return the facts, None where the records are refused."""
    batch = batch_v2_of(
        payload,
        record_count=count,
        base_timestamp=BASE_TIMESTAMP,
        max_timestamp=77,
        attributes=attributes,
    )
    view = memoryview(batch)
    with mock.patch.object(record_summary, "_FEW_RECORDS", way):
        try:
            return record_summary.summarize(view, parse_batch_header(view), Decompressor())
        except InvalidRecordError:
            return None


def payload_of(records: list[Stored]) -> bytes:
    return b"".join(
        record_v2(each.timestamp - BASE_TIMESTAMP, each.offset, each.key, each.value, each.headers)
        for each in records
    )


@pytest.mark.parametrize("way", [BY_KERNEL, BY_PLAIN_DECODER])
def test_facts_of_a_few_records_by_hand(way: int) -> None:
    records = [
        Stored(0, 1_000_000, b"k", b"v"),
        Stored(1, 999_990, None, None, (("h", b"1"), ("h", None))),
        Stored(2, -1, b"", b"x" * 300),
        Stored(3, 1_000_005, None, b""),
    ]
    found = summarize(payload_of(records), 4, way)
    assert found is not None
    assert found.is_consecutive is True
    assert found[2:] == (2, 999_990, 1_000_005, 1)


@pytest.mark.parametrize("way", [BY_KERNEL, BY_PLAIN_DECODER])
@pytest.mark.parametrize("offsets", [(0, 2), (1, 2), (0, 0), (1, 0)])
def test_offsets_that_do_not_count_up_from_0_are_reported(
    offsets: tuple[int, int], way: int
) -> None:
    records = [Stored(offset, 1_000_000, b"k", b"v") for offset in offsets]
    found = summarize(payload_of(records), 2, way)
    assert found is not None
    assert not found.is_consecutive


@pytest.mark.parametrize("way", [BY_KERNEL, BY_PLAIN_DECODER])
def test_records_without_any_timestamp(way: int) -> None:
    records = [Stored(0, -1, b"k", b"v"), Stored(1, -1, b"k", b"v")]
    assert summarize(payload_of(records), 2, way) == RecordSummary(
        2,
        is_consecutive=True,
        null_keys=0,
        lowest_timestamp=None,
        highest_timestamp=-1,
        without_timestamp=2,
    )


@pytest.mark.parametrize("way", [BY_KERNEL, BY_PLAIN_DECODER])
def test_records_of_a_log_append_time_batch_have_its_max_timestamp(way: int) -> None:
    records = [Stored(0, 1_000_000, b"k", b"v"), Stored(1, 5, b"k", b"v")]
    found = summarize(payload_of(records), 2, way, attributes=0x08)
    assert found is not None
    assert found[3:] == (77, 77, 0)


stamps = st.one_of(st.just(-1), st.integers(0, 2**40))
optional = st.one_of(st.none(), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=5), optional), max_size=3).map(tuple)


@given(st.lists(st.tuples(stamps, optional, optional, headers), min_size=1, max_size=30))
def test_facts_are_those_of_what_was_written(
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> None:
    records = [Stored(index, *row) for index, row in enumerate(rows)]
    times = [row[0] for row in rows]
    expected = RecordSummary(
        len(rows),
        is_consecutive=True,
        null_keys=sum(row[1] is None for row in rows),
        lowest_timestamp=min((each for each in times if each >= 0), default=None),
        highest_timestamp=max(times),
        without_timestamp=times.count(-1),
    )
    assert summarize(payload_of(records), len(rows), BY_KERNEL) == expected
    assert summarize(payload_of(records), len(rows), BY_PLAIN_DECODER) == expected


VICTIM = payload_of(
    [
        Stored(0, 1_000_000, b"key", b"value", (("h", b"1"), ("g", None))),
        Stored(1, 1_000_001, None, b"v" * 70),
        Stored(2, 1_000_002, b"", None),
    ]
)


def test_a_changed_byte_gives_the_same_facts_both_ways_or_is_refused() -> None:
    seen = set()
    for at in range(len(VICTIM)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF, VICTIM[at] ^ 1, VICTIM[at] ^ 2):
            changed = VICTIM[:at] + bytes([value]) + VICTIM[at + 1 :]
            expected = summarize(changed, 3, BY_PLAIN_DECODER)
            assert summarize(changed, 3, BY_KERNEL) == expected, (at, value)
            seen.add(expected is None)
    assert seen == {True, False}


@pytest.mark.parametrize("count", [1, 2, 4, 2**31 - 1])
def test_a_wrong_count_is_refused(count: int) -> None:
    assert summarize(VICTIM, count) is None


def test_every_cut_is_refused() -> None:
    for length in range(len(VICTIM)):
        assert summarize(VICTIM[:length], 3) is None, length
