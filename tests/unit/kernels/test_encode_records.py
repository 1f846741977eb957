"""The encoding kernel: bytes against the tests' own builder, room, limits, and bad columns."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog import model
from pylog.kernels import encode_records as kernel
from pylog.record import batch_header
from tests.support import strategies
from tests.support.batches import Stored, batch_v2, record_v2
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

INT32_MAX = 2**31 - 1
CRC = slice(17, 21)


class Outcome(NamedTuple):
    batches: list[bytes]
    described: list[list[int]]
    next_row: int
    status: int
    detail: int


def numbers(values: Sequence[int]) -> npt.NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array


def bits(flags: Sequence[bool]) -> npt.NDArray[np.uint8]:
    """Return an Arrow bitmap; none where all are set."""
    if all(flags):
        return as_buffer(b"")
    return as_buffer(np.packbits(flags, bitorder="little").tobytes())


def column(
    values: Sequence[bytes | None],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    ends = list(accumulate((len(value or b"") for value in values), initial=0))
    data = b"".join(value or b"" for value in values)
    return numbers(ends), as_buffer(data), bits([value is not None for value in values])


def columns_of(records: Sequence[Stored]) -> list[npt.NDArray[np.int64] | npt.NDArray[np.uint8]]:
    """Return the kernel's columns; headers only where there are any."""
    headers = [header for record in records for header in record.headers]
    keys = column([name.encode() for name, _ in headers])
    values = column([content for _, content in headers])
    ends = list(accumulate((len(record.headers) for record in records), initial=0))
    return [
        numbers([record.timestamp for record in records]),
        *column([record.key for record in records]),
        *column([record.value for record in records]),
        numbers(ends if headers else []),
        as_buffer(b""),
        *keys[:2],
        *values,
    ]


def settings(**changed: int) -> npt.NDArray[np.int64]:
    chosen = np.array([INT32_MAX, INT32_MAX, 0, 0, 0, 0], dtype=np.int64)
    for name, value in changed.items():
        chosen[getattr(kernel, f"SET_{name}")] = value
    return chosen


def run(
    columns: Sequence[npt.NDArray[np.int64] | npt.NDArray[np.uint8]],
    *,
    first_row: int = 0,
    room: int = 1 << 16,
    most: int = 100,
    selection: Sequence[int] = (),
    **changed: int,
) -> Outcome:
    out = np.full(room, 0xEE, dtype=np.uint8)
    table = np.zeros((most, kernel.BATCH_FIELDS), dtype=np.int64)
    nothing_open = np.zeros(kernel.OPEN_FIELDS, dtype=np.int64)
    written, row, status, detail = kernel.encode_records(
        *(first_row, settings(**changed), numbers(selection), *columns),
        *(out, table, nothing_open),
    )
    described = table[:written].tolist()
    return Outcome(
        [out[start:end].tobytes() for start, end, *_ in described],
        described,
        int(row),
        int(status),
        int(detail),
    )


def without_crc(data: bytes) -> bytes:
    return data[: CRC.start] + bytes(4) + data[CRC.stop :]


def expected(records: Sequence[Stored]) -> bytes:
    return without_crc(batch_v2(records, leader_epoch=0).data)


def records_of_size(count: int, *, key: bytes | None = b"key", size: int = 10) -> list[Stored]:
    return [Stored(i, 1_000 + i, key, bytes([i % 251]) * size) for i in range(count)]


@pytest.mark.parametrize(
    "size", [0, 1, 49, 50, 51, 52, 62, 63, 64, 7_900, 7_935, 7_936, 7_937, 8_191, 8_192, 40_000]
)
@pytest.mark.parametrize("key", [None, b"", b"k" * 63, b"k" * 64, b"k" * 9_000])
def test_every_length_of_key_and_value_is_written_as_the_format_says(
    key: bytes | None, size: int
) -> None:
    records = [Stored(0, 5, key, b"v" * size), Stored(1, 6, key, None)]
    assert run(columns_of(records)).batches == [expected(records)]


@pytest.mark.parametrize(
    "delta",
    [
        *(0, 1, -1, 63, 64, -64, -65, 8_191, 8_192, -8_192, -8_193),
        *(1_048_575, 1_048_576, -1_048_576, -1_048_577, 2**40, -(2**40), 2**62, -(2**62)),
    ],
)
def test_every_timestamp_delta_is_written_as_the_format_says(delta: int) -> None:
    base = max(0, -delta)
    records = [Stored(0, base, b"k", b"v"), Stored(1, base + delta, b"k", b"v")]
    assert run(columns_of(records)).batches == [expected(records)]


@pytest.mark.parametrize("stamps", [(-1, 2**63 - 1), (2**63 - 1, -1)])
def test_a_timestamp_delta_of_more_than_64_bits_wraps(stamps: tuple[int, int]) -> None:
    records = [Stored(i, stamp, b"k", b"v") for i, stamp in enumerate(stamps)]
    assert run(columns_of(records)).batches == [expected(records)]


def test_the_offset_delta_grows_past_two_bytes() -> None:
    records = [Stored(i, 1, None, None) for i in range(8_200)]
    assert run(columns_of(records), room=1 << 18).batches == [expected(records)]


def test_headers_are_written_after_the_value() -> None:
    records = [
        Stored(0, 1, None, b"v", (("a", b"1"), ("a", None), ("", b""))),
        Stored(1, 1, None, b"v"),
        Stored(2, 1, b"k", None, (("ü" * 40, b"x" * 100),) * 70),
    ]
    assert run(columns_of(records)).batches == [expected(records)]


def test_a_row_whose_headers_are_null_has_none() -> None:
    records = [Stored(0, 1, None, b"v", (("a", b"1"),)), Stored(1, 1, None, b"v", (("b", b"2"),))]
    columns = columns_of(records)
    columns[8] = bits([False, True])
    assert run(columns).batches == [expected([records[0]._replace(headers=()), records[1]])]


@given(
    st.lists(strategies.bodies(strategies.MILLISECONDS | st.integers(0, 2**62)), min_size=1),
    st.integers(1, 6),
)
def test_any_records_are_written_as_the_format_says(
    bodies: list[strategies.Body], max_records: int
) -> None:
    records = [
        Stored(i, body.timestamp, body.key, body.value, body.headers)
        for i, body in enumerate(bodies)
    ]
    cut = [records[i : i + max_records] for i in range(0, len(records), max_records)]
    outcome = run(columns_of(records), room=1 << 22, MAX_RECORDS=max_records)
    assert outcome.batches == [expected(batch) for batch in cut]


def test_a_batch_is_closed_before_the_record_that_would_make_it_too_large() -> None:
    records = records_of_size(10)
    size = len(record_v2(0, 0, b"key", b"v" * 10))
    exact = run(columns_of(records), BATCH_SIZE_BYTES=61 + 4 * size)
    assert [described[kernel.BATCH_RECORD_COUNT] for described in exact.described] == [4, 4, 2]
    assert exact.batches == [expected(records[i : i + 4]) for i in (0, 4, 8)]
    below = run(columns_of(records), BATCH_SIZE_BYTES=61 + 4 * size - 1)
    assert [described[kernel.BATCH_RECORD_COUNT] for described in below.described] == [3, 3, 3, 1]


def test_a_record_above_the_batch_size_makes_a_batch_of_its_own() -> None:
    records = [*records_of_size(2), Stored(2, 3, b"k", b"v" * 500), Stored(3, 4, b"k", b"v")]
    outcome = run(columns_of(records), BATCH_SIZE_BYTES=120)
    assert outcome.batches == [
        expected(records[:2]),
        expected(records[2:3]),
        expected(records[3:]),
    ]


def test_a_batch_describes_itself() -> None:
    stamps = (50, 40, 70, 60)
    records = [Stored(i, stamp, None, b"v") for i, stamp in enumerate(stamps)]
    outcome = run(columns_of(records), MAX_RECORDS=3)
    sizes = [len(batch) for batch in outcome.batches]
    assert outcome.described == [
        [0, sizes[0], 3, 50, 70],
        [sizes[0], sum(sizes), 1, 60, 60],
    ]


def test_the_header_fields_are_the_settings() -> None:
    records = [Stored(7, 1, None, b"v"), Stored(8, 1, None, b"v")]
    outcome = run(
        columns_of([record._replace(offset=0) for record in records]),
        BASE_OFFSET=7,
        PARTITION_LEADER_EPOCH=3,
        ATTRIBUTES=0x10,
    )
    built = batch_v2(records, leader_epoch=3, is_transactional=True)
    assert outcome.batches == [without_crc(built.data)]


def test_what_has_no_room_is_left_and_can_be_gone_on_with() -> None:
    records = records_of_size(10)
    whole = run(columns_of(records), MAX_RECORDS=2)
    first = run(
        columns_of(records),
        MAX_RECORDS=2,
        room=sum(map(len, whole.batches[:2])) + 30 + kernel.SPARE_BYTES,
    )
    assert first.batches == whole.batches[:2]
    assert (first.next_row, first.status) == (4, kernel.STATUS_NEEDS_ROOM)
    rest = run(columns_of(records), MAX_RECORDS=2, first_row=4)
    assert rest.batches == whole.batches[2:]
    assert (rest.next_row, rest.status) == (10, kernel.STATUS_OK)


@pytest.mark.parametrize("chosen", [[0], [4, 1, 1, 9], list(range(9, -1, -1))])
def test_selected_rows_are_written_in_the_order_of_the_selection(chosen: list[int]) -> None:
    records = [
        Stored(i, 1_000 + i, b"k%d" % i, bytes([i]) * i, ((f"h{i}", b"x"),)) for i in range(10)
    ]
    found = run(columns_of(records), selection=chosen)
    wanted = [records[row]._replace(offset=place) for place, row in enumerate(chosen)]
    assert found.batches == [expected(wanted)]
    assert (found.next_row, found.status) == (len(chosen), kernel.STATUS_OK)


def test_batches_of_selected_rows_are_cut_and_gone_on_with_by_their_place() -> None:
    records = records_of_size(100)
    chosen = list(range(99, 0, -2))
    wanted = [records[row]._replace(offset=place) for place, row in enumerate(chosen)]
    whole = run(columns_of(wanted), MAX_RECORDS=7)
    assert run(columns_of(records), selection=chosen, MAX_RECORDS=7).batches == whole.batches
    rest = run(columns_of(records), selection=chosen, first_row=14, MAX_RECORDS=7)
    assert rest.batches == whole.batches[2:]


@pytest.mark.parametrize("row", [-1, 3, 2**62, -(2**62)])
def test_a_selected_row_that_is_not_there_is_refused(row: int) -> None:
    found = run(columns_of(records_of_size(3)), selection=[0, row])
    assert found == Outcome([], [], 0, kernel.STATUS_BAD_COLUMN, row)


def run_in_parts(
    records: list[Stored], cuts: Sequence[int], *, room: int, **changed: int
) -> list[bytes]:
    """Return the batches of calls that leave the last batch open, and of one that closes it."""
    opened = np.zeros(kernel.OPEN_FIELDS, dtype=np.int64)
    out = np.full(room, 0xEE, dtype=np.uint8)
    table = np.zeros((5, kernel.BATCH_FIELDS), dtype=np.int64)
    batches: list[bytes] = []
    bounds = [0, *cuts, len(records)]
    parts = [records[start:end] for start, end in pairwise(bounds)]
    offset = 0
    for part in [*parts, []]:
        row, status = 0, kernel.STATUS_OK
        keeps = bool(part)
        chosen = settings(KEEP_OPEN=int(keeps), BASE_OFFSET=offset, **changed)
        while row < len(part) or (opened[kernel.OPEN_RECORDS] and not keeps):
            start, end = opened[kernel.OPEN_START], opened[kernel.OPEN_END]
            out[: end - start] = out[start:end].copy()
            opened[kernel.OPEN_START], opened[kernel.OPEN_END] = 0, end - start
            written, row, status, _ = kernel.encode_records(
                *(row, chosen, numbers([]), *columns_of(part), out, table, opened)
            )
            assert written or status == kernel.STATUS_OK
            batches += [out[start:end].tobytes() for start, end, *_ in table[:written].tolist()]
        offset += len(part)
    return batches


@pytest.mark.parametrize("cuts", [[1], [20], [1, 2, 3, 40, 41], [7, 14, 21, 28]])
@pytest.mark.parametrize("limit", [{"MAX_RECORDS": 7}, {"BATCH_SIZE_BYTES": 300}, {}])
def test_a_batch_that_was_left_open_is_gone_on_with(cuts: list[int], limit: dict[str, Any]) -> None:
    records = records_of_size(50)
    whole = run(columns_of(records), **limit)
    assert run_in_parts(records, cuts, room=2_000, **limit) == whole.batches


def test_what_has_no_room_stays_in_the_open_batch() -> None:
    records = records_of_size(50)
    whole = run(columns_of(records), MAX_RECORDS=7)
    room = 2 * len(whole.batches[0]) + 40 + kernel.SPARE_BYTES
    assert run_in_parts(records, [30], room=room, MAX_RECORDS=7) == whole.batches


@pytest.mark.parametrize("end", [0, 60, 1 << 16, 2**62, -1])
def test_an_open_batch_that_does_not_lie_in_the_output_is_not_gone_on_with(end: int) -> None:
    opened = np.array([1, 0, end, 0, 0], dtype=np.int64)
    out = np.full(1 << 10, 0xEE, dtype=np.uint8)
    table = np.zeros((5, kernel.BATCH_FIELDS), dtype=np.int64)
    written, _, status, _ = kernel.encode_records(
        *(0, settings(), numbers([]), *columns_of(records_of_size(1)), out, table, opened)
    )
    assert (written, status) == (0, kernel.STATUS_NEEDS_ROOM)
    assert (out == 0xEE).all()


@pytest.mark.parametrize("key", [b"k", b"k" * 70])
def test_nothing_is_written_past_the_end_of_the_output(key: bytes) -> None:
    records = records_of_size(3, key=key)
    (batch,) = run(columns_of(records)).batches
    exact = run(columns_of(records), room=len(batch) + kernel.SPARE_BYTES)
    assert exact.batches == [batch]
    short = run(columns_of(records), room=len(batch) + kernel.SPARE_BYTES - 1)
    assert short == Outcome([], [], 0, kernel.STATUS_NEEDS_ROOM, len(batch))


def test_a_full_table_of_batches_ends_the_call() -> None:
    outcome = run(columns_of(records_of_size(5)), MAX_RECORDS=1, most=3)
    assert (len(outcome.batches), outcome.next_row, outcome.status) == (3, 3, kernel.STATUS_OK)


def test_no_rows_make_no_batch() -> None:
    assert run(columns_of([])) == Outcome([], [], 0, kernel.STATUS_OK, 0)


@pytest.mark.parametrize(
    ("place", "ends"),
    [
        *((place, (0, 3, 2)) for place in (1, 4)),  # the second length is negative
        *((place, (0, 1, 2**40)) for place in (1, 4)),
        *((place, (0, 1, 4)) for place in (1, 4)),  # one byte too far
        *((place, (-1, 1, 2)) for place in (1, 4)),
        *((place, (0, 1, 4)) for place in (9, 11)),
        *((place, (0, -1, 2)) for place in (9, 11)),
        (7, (0, 1, 3)),  # an entry that is not there
        (7, (0, 1, 4)),
        (7, (0, -1, 1)),
        (7, (0, 1, 0)),
    ],
)
def test_offsets_outside_of_a_columns_bytes_are_refused(
    place: int, ends: tuple[int, int, int]
) -> None:
    header = (("a", b"1"),)
    records = [Stored(0, 1, b"1", b"1", header), Stored(1, 1, b"12", b"12", header)]
    records[1] = records[1]._replace(headers=(("ab", b"12"),))
    columns = columns_of(records)
    columns[place] = numbers(ends)
    outcome = run(columns, MAX_RECORDS=1)
    assert outcome.status == kernel.STATUS_BAD_COLUMN
    assert outcome.detail == (0 if min(ends) < 0 else 1)
    assert len(outcome.batches) == outcome.next_row == outcome.detail


@pytest.mark.parametrize("extra", [-80, 0])
def test_a_record_beyond_the_largest_batch_is_refused(extra: int) -> None:
    # Never read: what is refused, or has no room, is not copied. Fresh memory takes none.
    data = np.zeros(INT32_MAX, dtype=np.uint8)
    data.setflags(write=False)
    columns = columns_of(records_of_size(2, key=None))
    columns[4:7] = [numbers([0, 10, INT32_MAX + extra]), data, as_buffer(b"")]
    outcome = run(columns)
    assert len(outcome.batches) == 1
    assert outcome.next_row == 1
    if extra:
        assert outcome.status == kernel.STATUS_NEEDS_ROOM
    else:
        # 10 bytes less of value than INT32_MAX, but 61 of header and some of the record.
        assert (outcome.status, outcome.detail) == (kernel.STATUS_RECORD_TOO_LARGE, 1)


def test_the_constants_are_those_of_the_format() -> None:
    assert kernel.RECORDS_OFFSET == batch_header.RECORDS_OFFSET
    assert kernel.LOG_OVERHEAD == batch_header.LOG_OVERHEAD
    assert kernel.MAGIC_VALUE_V2 == batch_header.MAGIC_VALUE_V2
    assert kernel.NO_TIMESTAMP == model.NO_TIMESTAMP
    assert kernel.NO_SEQUENCE == model.NO_SEQUENCE
