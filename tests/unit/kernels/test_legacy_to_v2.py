"""The kernel that writes v0 and v1 messages as records of v2, against the tests' own builders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import legacy_to_v2 as kernel
from tests.support import strategies
from tests.support.batches import Stored, message, message_set, record_v2
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence


class Rewritten(NamedTuple):
    status: int
    at_fault: int
    batches: list[tuple[bytes, int, int, int]]
    """Records, base offset, base timestamp and count of each set."""


def rewrite(
    sets: Sequence[bytes],
    *,
    is_wrapped: bool = False,
    offset: int = 2**62,
    magic: int = 1,
    append_time: int | None = None,
) -> Rewritten:
    data = b"".join(sets)
    table = np.zeros((len(sets), kernel.SET_FIELDS), dtype=np.int64)
    table[:, kernel.SET_END] = np.cumsum([len(each) for each in sets])
    table[1:, kernel.SET_START] = table[:-1, kernel.SET_END]
    table[:, kernel.SET_IS_WRAPPED] = is_wrapped
    table[:, kernel.SET_OFFSET] = offset
    table[:, kernel.SET_MAGIC] = magic
    table[:, kernel.SET_APPEND_TIME] = append_time is not None
    table[:, kernel.SET_TIMESTAMP] = append_time or 0
    out = np.zeros(2 * len(data) + kernel.MOST_OVERHEAD, dtype=np.uint8)
    found = np.zeros((len(sets), kernel.BATCH_FIELDS), dtype=np.int64)
    status, index = kernel.legacy_to_v2(as_buffer(data), table, out, found)
    batches = [
        (out[start:end].tobytes(), base_offset, base_timestamp, count)
        for start, end, base_offset, base_timestamp, count in found.tolist()
    ]
    return Rewritten(int(status), int(index), batches)


def as_v2(records: Sequence[Stored]) -> tuple[bytes, int, int, int]:
    first = records[0]
    payload = b"".join(
        record_v2(
            each.timestamp - first.timestamp, each.offset - first.offset, each.key, each.value
        )
        for each in records
    )
    return payload, first.offset, first.timestamp, len(records)


def placed(bodies: Sequence[strategies.Body], *, magic: int, start: int) -> list[Stored]:
    offset, records = start, []
    for body in bodies:
        timestamp = max(-1, body.timestamp) if magic else -1
        records.append(Stored(offset, timestamp, body.key, body.value))
        offset += body.gap
    return records


@given(
    st.lists(strategies.bodies(), min_size=1, max_size=6), st.integers(0, 2**40), st.integers(0, 1)
)
def test_each_message_is_a_batch_of_one_record(
    bodies: list[strategies.Body], start: int, magic: int
) -> None:
    records = placed(bodies, magic=magic, start=start)
    rewritten = rewrite([message(record, magic=magic).data for record in records], magic=magic)
    assert rewritten.status == kernel.STATUS_OK
    assert rewritten.batches == [as_v2([record]) for record in records]


@given(
    st.lists(strategies.bodies(), min_size=1, max_size=6),
    st.integers(0, 2**40),
    st.sampled_from([(0, 0), (1, 1), (1, 0)]),
    st.none() | st.integers(0, 2**42),
)
def test_a_wrappers_messages_are_a_batch(
    bodies: list[strategies.Body],
    start: int,
    magics: tuple[int, int],
    append_time: int | None,
) -> None:
    magic, inner_magic = magics
    append_time = append_time if inner_magic else None
    records = placed(bodies, magic=inner_magic, start=start)
    inner = message_set(records, inner_magic=inner_magic, relative_to=start if magic else 0)
    cut_short = inner + inner[:20]  # what is not whole does not count
    rewritten = rewrite(
        [cut_short],
        is_wrapped=True,
        offset=records[-1].offset,
        magic=magic,
        append_time=append_time,
    )
    if append_time is not None:
        records = [record._replace(timestamp=append_time) for record in records]
    assert rewritten.status == kernel.STATUS_OK
    assert rewritten.batches == [as_v2(records)]


def test_messages_that_cannot_be_are_refused() -> None:
    sound = Stored(3, 5, b"k", b"v")
    good = message(sound, magic=1).data
    assert rewrite([good, good[:-1]]).status == kernel.STATUS_EMPTY_SET
    assert rewrite([good, good[:-1]]).at_fault == 1
    assert rewrite([good], offset=2).status == kernel.STATUS_BAD_OFFSET
    wrapped = message_set([sound, sound], inner_magic=1)
    assert rewrite([wrapped], is_wrapped=True, magic=0).status == kernel.STATUS_BAD_OFFSET
    for at, byte in ((16, 2), (17, 1), (11, 5), (29, 0x7F), (34, 0x7F)):
        bad = bytearray(good)
        bad[at] = byte
        assert rewrite([bytes(bad)]).status in {kernel.STATUS_BAD_MESSAGE, kernel.STATUS_EMPTY_SET}


@given(st.lists(strategies.bodies(), min_size=1, max_size=4), st.data())
def test_no_bytes_lead_it_out_of_its_buffers(
    bodies: list[strategies.Body], data: st.DataObject
) -> None:
    magic = data.draw(st.integers(0, 1))
    records = placed(bodies, magic=magic, start=0)
    changed = data.draw(strategies.mutated(message_set(records, inner_magic=magic)))
    rewritten = rewrite([changed], is_wrapped=True)
    assert rewritten.status in range(4)


@pytest.mark.parametrize("timestamp", [2**63 - 1, -(2**63)])
def test_timestamps_at_the_ends_of_time_wrap_as_javas(timestamp: int) -> None:
    records = [Stored(0, -1, b"k", b"v"), Stored(1, timestamp, b"k", b"v")]
    rewritten = rewrite([message_set(records, inner_magic=1)], is_wrapped=True, offset=1)
    assert rewritten.status == kernel.STATUS_OK
    assert rewritten.batches[0][3] == 2
