"""murmur2 and the partitioners: Kafka's vectors, kafka-python, and how records are spread."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.writing.partitioner import (
    DefaultPartitioner,
    IntegerKeyPartitioner,
    RoundRobinPartitioner,
    murmur2,
    partition_of_key,
    partitions_of_keys,
    rows_by_partition,
)
from tests.unit.kernels.murmur2_vectors import VECTORS

if TYPE_CHECKING:
    from collections.abc import Sequence

INT32_MAX = 2**31 - 1
# Of kafka-python, made with Kafka's Java client for 1,000 partitions.
JAVA_PARTITIONS = [
    (b"", 681),
    (b"a", 524),
    (b"ab", 434),
    (b"abc", 107),
    (b"123456789", 566),
    (b"\x00 ", 742),
]


@pytest.mark.parametrize(("key", "expected"), JAVA_PARTITIONS)
def test_a_key_goes_where_javas_client_sends_it(key: bytes, expected: int) -> None:
    assert partition_of_key(key, 1000) == expected
    assert partitions_of_keys(pa.array([key], pa.binary()), 1000).tolist() == [expected]


def test_a_negative_hash_is_masked_and_not_negated() -> None:
    hashed = dict(VECTORS)[b"foobar"]
    assert partition_of_key(b"foobar", INT32_MAX) == (hashed + 2**31) % INT32_MAX
    assert partition_of_key(b"foobar", INT32_MAX) != -hashed % INT32_MAX


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, INT32_MAX), st.data())
def test_a_column_goes_where_its_keys_go(
    keys: list[bytes | None], count: int, data: st.DataObject
) -> None:
    expected = [-1 if key is None else partition_of_key(key, count) for key in keys]
    kind = data.draw(st.sampled_from((pa.binary(), pa.large_binary())))
    assert partitions_of_keys(pa.array(keys, kind), count).tolist() == expected
    first = data.draw(st.integers(0, len(keys)))
    sliced = pa.array(keys, kind).slice(first, 20)
    assert partitions_of_keys(sliced, count).tolist() == expected[first : first + 20]


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (["", "ä", None, "abc"], pa.string()),
        (["", "ä", None, "abc"], pa.large_string()),
        ([b"abc", None, b"abd"], pa.binary(3)),
        ([None, None], pa.null()),
        ([], pa.binary()),
    ],
)
def test_text_and_fixed_sizes_are_hashed_as_their_bytes(
    keys: Sequence[str | bytes | None], kind: pa.DataType
) -> None:
    raw = [key.encode() if isinstance(key, str) else key for key in keys]
    expected = [-1 if key is None else partition_of_key(key, 7) for key in raw]
    partitions = partitions_of_keys(pa.array(keys, kind), 7)
    assert partitions.dtype == np.int32
    assert partitions.tolist() == expected


def test_keys_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match=r"column 'key' is of type int64; those of bytes and text"):
        partitions_of_keys(pa.array([1]), 3)


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_a_partition_count_out_of_range_is_refused(count: int) -> None:
    text = f"partition count is {count}, not from 1 to 2147483647"
    makers: list[Any] = [
        lambda: DefaultPartitioner(count, random.Random(1)),
        lambda: RoundRobinPartitioner(count),
        lambda: IntegerKeyPartitioner(count),
        lambda: partitions_of_keys(pa.array([b"a"]), count),
    ]
    for make in makers:
        with pytest.raises(ValueError, match=text):
            make()


def spread(partitioner: DefaultPartitioner, *records: tuple[bytes | None, int]) -> list[int]:
    """Return the partitions of records, by their keys and sizes."""
    keys = pa.array([key for key, _ in records], pa.binary())
    sizes = np.array([size for _, size in records], dtype=np.int64)
    found: list[int] = partitioner.partition_column(keys, sizes).tolist()
    return found


def test_a_keyed_record_does_not_touch_the_sticky_partition() -> None:
    partitioner = DefaultPartitioner(1000, random.Random(1))
    [before] = spread(partitioner, (None, 1))
    assert spread(partitioner, (b"abc", 1 << 20), (b"", 1 << 20)) == [107, 681]
    assert spread(partitioner, (None, 1)) == [before]


def test_records_without_a_key_stay_until_a_batch_is_full() -> None:
    partitioner = DefaultPartitioner(1000, random.Random(1), sticky_batch_bytes=100)
    found = spread(partitioner, *[(None, 30)] * 12)
    # The fourth reaches 100 bytes and still belongs.
    assert len(set(found[:4])) == len(set(found[4:8])) == len(set(found[8:])) == 1
    assert len(set(found)) == 3


def test_a_batch_that_is_full_to_the_byte_ends() -> None:
    partitioner = DefaultPartitioner(1000, random.Random(1), sticky_batch_bytes=60)
    found = spread(partitioner, *[(None, 30)] * 4)
    assert found[0] == found[1] != found[2] == found[3]


def test_sticky_partitions_are_drawn_uniformly_from_all() -> None:
    partitioner = DefaultPartitioner(4, random.Random(1), sticky_batch_bytes=1)
    found = spread(partitioner, *[(None, 1)] * 4_000)
    counts = [found.count(partition) for partition in range(4)]
    assert sum(counts) == 4_000
    assert min(counts) > 900
    assert any(one == other for one, other in pairwise(found))


@given(
    st.lists(
        st.lists(st.tuples(st.none() | st.binary(max_size=3), st.integers(0, 90)), max_size=30),
        max_size=3,
    ),
    st.integers(1, 200),
)
def test_columns_are_spread_as_their_records_one_by_one(
    columns: list[list[tuple[bytes | None, int]]], sticky_batch_bytes: int
) -> None:
    source = random.Random(3)
    sticky, sticky_bytes = source.randrange(50), 0
    partitioner = DefaultPartitioner(50, random.Random(3), sticky_batch_bytes=sticky_batch_bytes)
    for column in columns:
        expected = []
        for key, size in column:
            if key is not None:
                expected.append((murmur2(key) & 0x7FFFFFFF) % 50)
                continue
            expected.append(sticky)
            sticky_bytes += size
            if sticky_bytes >= sticky_batch_bytes:
                sticky, sticky_bytes = source.randrange(50), 0
        assert spread(partitioner, *column) == expected


def test_round_robin_begins_at_0_and_goes_on() -> None:
    partitioner = RoundRobinPartitioner(3)
    assert partitioner.partitions(1).tolist() == [0]
    assert partitioner.partitions(4).tolist() == [1, 2, 0, 1]
    assert partitioner.partitions(0).tolist() == []
    assert partitioner.partitions(1).tolist() == [2]


def test_the_round_robin_counter_wraps_as_kafkas_int_does() -> None:
    partitioner = RoundRobinPartitioner(10)
    partitioner._counter = 2**31 - 2
    assert partitioner.partitions(4).tolist() == [6, 7, 0, 1]
    partitioner._counter = 2**32 - 1
    assert partitioner.partitions(2).tolist() == [7, 0]
    assert partitioner.partitions(1).tolist() == [1]


@pytest.mark.parametrize(
    ("key", "expected"),
    [(0, 0), (6, 2), (-1, 3), (2**70 + 1, 1), (b"6", 2), (b"-1", 3), ("+7", 3), ("007", 3)],
)
def test_an_integer_key_goes_to_its_remainder(key: int | bytes | str, expected: int) -> None:
    assert IntegerKeyPartitioner(4).partition(key) == expected


@pytest.mark.parametrize("key", [b"", b"a", b"1.0", b"1_0", " 1", "1\n", b"0x1", "٣", b"\xb2", "-"])
def test_a_key_that_is_not_a_decimal_number_is_refused(key: bytes | str) -> None:
    with pytest.raises(ValueError, match="is not a decimal number"):
        IntegerKeyPartitioner(4).partition(key)


@pytest.mark.parametrize(
    ("keys", "kind", "expected"),
    [
        ([5, -1, 127, -128], pa.int8(), [5, 199, 127, 72]),
        ([5, -1, 2**63 - 1], pa.int64(), [5, 199, (2**63 - 1) % 200]),
        ([2**64 - 1], pa.uint64(), [(2**64 - 1) % 200]),
        ([b"5", b"-1", b"200"], pa.binary(), [5, 199, 0]),
        (["5", "-1", "200"], pa.large_string(), [5, 199, 0]),
        ([], pa.int32(), []),
        ([], pa.string(), []),
    ],
)
def test_a_column_of_integer_keys_goes_to_the_remainders(
    keys: list[Any], kind: pa.DataType, expected: list[int]
) -> None:
    partitions = IntegerKeyPartitioner(200).partition_column(pa.array(keys, kind))
    assert partitions.dtype == np.int32
    assert partitions.tolist() == expected


def test_a_slice_of_integer_keys_is_taken_as_it_is() -> None:
    keys = pa.array([1, 2, 3, 4]).slice(1, 2)
    assert IntegerKeyPartitioner(10).partition_column(keys).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (pa.array([1, None]), "row 1: the key is null, an integer is needed"),
        (pa.array([b"1", b"2", b"x"]), r"row 2: key b'x' is not a decimal number"),
        (pa.array([1.5]), "column 'key' is of type double; those of bytes and text are"),
    ],
)
def test_a_column_with_other_keys_is_refused(keys: pa.Array, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        IntegerKeyPartitioner(10).partition_column(keys)


def _by_partition(assigned: list[int]) -> list[tuple[int, list[int] | None]]:
    grouped = rows_by_partition(np.array(assigned, dtype=np.int64))
    return [(number, None if rows is None else rows.tolist()) for number, rows in grouped]


def test_rows_of_a_partition_keep_their_order() -> None:
    assert _by_partition([3, 0, 3, 1, 0, 3]) == [(0, [1, 4]), (1, [3]), (3, [0, 2, 5])]


@pytest.mark.parametrize("large", [2**15, 2**16, 2**31 - 1])
def test_partitions_whose_numbers_do_not_fit_into_16_bits_stay_apart(large: int) -> None:
    assert _by_partition([large, 0, large, 32_767]) == [(0, [1]), (32_767, [3]), (large, [0, 2])]


def test_all_rows_of_one_partition_are_not_listed() -> None:
    assert _by_partition([7, 7, 7]) == [(7, None)]
    assert _by_partition([]) == []
