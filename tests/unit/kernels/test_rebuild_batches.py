"""The kernel that writes batches with some of their records, against the tests' own builder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from pylog.kernels import rebuild_batches as kernel
from tests.support import strategies
from tests.support.batches import Stored, batch_v2, record_v2
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

CRC = slice(17, 21)
HEADER_BYTES = 61


def without_crc(batch: bytes) -> bytes:
    return batch[: CRC.start] + bytes(4) + batch[CRC.stop :]


def rebuild(
    records: Sequence[Stored],
    kept: Sequence[bool],
    *,
    old_base: tuple[int, int],
    from_records: bool = False,
    last_offset: int = 0,
    horizon: int = -1,
    append_time: int | None = None,
    room: int | None = None,
) -> tuple[int, int, bytes]:
    """Rebuild one batch, whose old base offset and timestamp are given, and an empty one."""
    payload = b""
    positions = []
    for record in records:
        positions.append(len(payload))
        payload += record_v2(
            record.timestamp - old_base[1],
            record.offset - old_base[0],
            record.key,
            record.value,
            record.headers,
        )
    table = np.zeros((2, kernel.BATCH_FIELDS), dtype=np.int64)
    table[:, kernel.BATCH_DELETE_HORIZON] = horizon, -1
    table[:, kernel.BATCH_END_ROW] = len(records), 0
    table[:, kernel.BATCH_OLD_BASE_TIMESTAMP] = old_base[1]
    table[:, kernel.BATCH_APPEND_TIME] = append_time is not None
    table[:, kernel.BATCH_MAX_TIMESTAMP] = -1 if append_time is None else append_time
    table[:, kernel.BATCH_BASE_OFFSET] = old_base[0]
    table[:, kernel.BATCH_LAST_OFFSET] = last_offset
    table[:, kernel.BATCH_FROM_RECORDS] = from_records
    table[:, kernel.BATCH_PARTITION_LEADER_EPOCH] = 3
    table[:, kernel.BATCH_ATTRIBUTES] = 0x40 * (horizon != -1) + 8 * (append_time is not None)
    table[:, kernel.BATCH_PRODUCER_ID] = 2**40
    table[:, kernel.BATCH_PRODUCER_EPOCH] = 5
    table[:, kernel.BATCH_BASE_SEQUENCE] = 2**31 - 1
    most = len(payload) + kernel.MOST_ADDED_BYTES * (len(records) + 1) + 2 * HEADER_BYTES
    out = np.zeros(most if room is None else room, dtype=np.uint8)
    ends = np.zeros(2, dtype=np.int64)
    status, at = kernel.rebuild_batches(
        as_buffer(payload + b"\x00"),
        table,
        np.array(positions, dtype=np.int64),
        np.array([record.offset for record in records], dtype=np.int64),
        np.array(kept, dtype=np.uint8),
        out,
        ends,
    )
    return int(status), int(at), out[: ends[0]].tobytes()


@given(
    bodies=st.lists(strategies.bodies(), min_size=1, max_size=6),
    data=st.data(),
    horizon=st.none() | st.integers(0, 2**50),
    append_time=st.none() | st.integers(0, 2**50),
    from_records=st.booleans(),
)
def test_a_batch_is_that_of_the_records_kept(
    bodies: list[strategies.Body],
    data: st.DataObject,
    horizon: int | None,
    append_time: int | None,
    *,
    from_records: bool,
) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(bodies), max_size=len(bodies)))
    assume(any(kept))
    base = data.draw(st.integers(0, 2**40)), data.draw(st.integers(-1, 2**42))
    records, offset = [], base[0]
    for body in bodies:
        offset += data.draw(st.integers(0, 2))
        timestamp = max(-1, body.timestamp)
        records.append(Stored(offset, timestamp, body.key, body.value, body.headers))
        offset += 1
    chosen = [record for record, is_kept in zip(records, kept, strict=True) if is_kept]
    status, _, built = rebuild(
        records,
        kept,
        old_base=base,
        from_records=from_records,
        last_offset=offset,
        horizon=-1 if horizon is None else horizon,
        append_time=append_time,
    )
    assert status == kernel.STATUS_OK
    # Every record of a LogAppendTime batch reports that time, and so it is written.
    if append_time is not None:
        chosen = [record._replace(timestamp=append_time) for record in chosen]
    expected = batch_v2(
        chosen,
        base_offset=chosen[0].offset if from_records else base[0],
        last_offset=chosen[-1].offset if from_records else offset,
        append_time=append_time,
        delete_horizon=horizon,
        leader_epoch=3,
        producer_id=2**40,
        producer_epoch=5,
        base_sequence=2**31 - 1,
    )
    assert without_crc(built) == without_crc(expected.data)


def test_negative_timestamps_but_none_are_refused() -> None:
    records = [Stored(0, 5, b"k", b"v"), Stored(1, -2, b"k", b"v")]
    status, at, _ = rebuild(records, [True, True], old_base=(0, 0))
    assert (status, at) == (kernel.STATUS_BAD_TIMESTAMP, 1)
    assert rebuild(records, [True, False], old_base=(0, 0))[0] == kernel.STATUS_OK
    records[1] = records[1]._replace(timestamp=-1)
    assert rebuild(records, [True, True], old_base=(0, 0))[0] == kernel.STATUS_OK


@given(st.integers(0, 400))
def test_it_stops_where_there_is_no_room(room: int) -> None:
    records = [Stored(number, 5, b"key", b"value" * 20) for number in range(2)]
    status, _, built = rebuild(records, [True, True], old_base=(0, 0), room=room)
    whole = rebuild(records, [True, True], old_base=(0, 0))[2]
    assert built in (whole, b"")
    assert (status == kernel.STATUS_OK) <= (built == whole)
