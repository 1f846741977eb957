"""Which partition a record goes to: Kafka's default, round robin, and integer keys modulo.

Keys are hashed with murmur2 (`pylog.kernels.murmur2`; `murmur2` here is the readable form)::

    partition = (murmur2(key) & 0x7fffffff) mod partitions

over all partitions, as every Kafka client does, so that a key of an existing topic goes where it
went before. An empty key is hashed; only a key that is null is not.

Source: BuiltInPartitioner, Utils.murmur2, RoundRobinPartitioner (Kafka 4.3); KIP-794.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.encode_input import binary_column
from pylog.kernels import murmur2 as kernel
from pylog.writing import PARTITIONER_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence, Sized

    import numpy.typing as npt

    Partitioner = Callable[[pa.RecordBatch], npt.ArrayLike]


STICKY_BATCH_BYTES = 16_384
"""Bytes that a partition gets before another is chosen for records without keys: the default of
producer property ``batch.size``."""

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_UINT32 = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_DECIMAL = re.compile(r"[+-]?[0-9]+")


def murmur2(data: bytes) -> int:
    """Return Kafka's murmur2 of ``data``, a signed 32-bit integer."""
    digest = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _UINT32
        word = (word ^ word >> 24) * _MULTIPLIER & _UINT32
        digest = digest * _MULTIPLIER & _UINT32 ^ word
    if whole < len(data):
        digest ^= int.from_bytes(data[whole:], "little")
        digest = digest * _MULTIPLIER & _UINT32
    digest = (digest ^ digest >> 13) * _MULTIPLIER & _UINT32
    digest ^= digest >> 15
    return digest - (1 << 32) if digest > _POSITIVE else digest


def partition_of_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's clients send a record of this key to."""
    return (murmur2(key) & _POSITIVE) % partition_count


def partitions_of_keys(keys: pa.Array, partition_count: int) -> npt.NDArray[np.int32]:
    """Return the partition of each key, -1 where it is null."""
    _ensure_count(partition_count)
    partitions = np.empty(len(keys), dtype=np.int32)
    status, row = kernel.murmur2_partitions(
        *binary_column(keys, "key"), partition_count, partitions
    )
    if status != kernel.STATUS_OK:
        msg = f"row {row}: the offsets of the key column do not lie within its bytes"
        raise ValueError(msg)
    return partitions


def _ensure_count(partition_count: int) -> None:
    if not 1 <= partition_count <= _POSITIVE:
        msg = f"partition count is {partition_count}, not from 1 to {_POSITIVE}"
        raise ValueError(msg)


class DefaultPartitioner:
    """Keys by their hash; records without a key stay with one partition for a while (KIP-794).

    The sticky partition gets records until their sizes come to ``sticky_batch_bytes``; then another
    is drawn, uniformly over all partitions, the old one included. A producer also
    postpones the switch while its batch is not full and prefers partitions with short queues; a
    log on disk has neither. State: the sticky partition and the bytes it got. One thread.
    """

    def __init__(
        self,
        partition_count: int,
        random_source: random.Random | None = None,
        *,
        sticky_batch_bytes: int = STICKY_BATCH_BYTES,
    ) -> None:
        _ensure_count(partition_count)
        self.partition_count = partition_count
        self._random = random_source or random.Random()  # noqa: S311 - no secret
        self._sticky_batch_bytes = sticky_batch_bytes
        self._sticky = self._random.randrange(partition_count)
        self._sticky_bytes = 0

    def __call__(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the partition of each row."""
        keys = batch.column("key")
        # Sizes matter for records without keys alone.
        sizes_bytes = record_sizes(batch) if keys.null_count else _NO_SIZES
        return self.partition_column(keys, sizes_bytes)

    def partition_column(
        self, keys: pa.Array, sizes_bytes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """Return the partitions of many records, from their keys and encoded sizes."""
        partitions = partitions_of_keys(keys, self.partition_count)
        without_key = np.flatnonzero(partitions == kernel.NULL_KEY)
        if without_key.size:
            partitions[without_key] = self._spread(sizes_bytes[without_key])
        return partitions

    def _spread(self, sizes_bytes: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return sticky partitions: one step a partition drawn, not one a record."""
        partitions = np.empty(sizes_bytes.size, dtype=np.int32)
        totals = np.cumsum(sizes_bytes)
        first, before = 0, 0
        while first < partitions.size:
            reached = before + self._sticky_batch_bytes - self._sticky_bytes
            last = int(np.searchsorted(totals, reached))
            if last == partitions.size:
                partitions[first:] = self._sticky
                self._sticky_bytes += int(totals[-1]) - before
                break
            partitions[first : last + 1] = self._sticky
            self._sticky = self._random.randrange(self.partition_count)
            self._sticky_bytes = 0
            first, before = last + 1, int(totals[last])
        return partitions


def ensure_integer_key(key: bytes | None) -> None:
    """Raise `ValueError` unless `IntegerKeyPartitioner` has a partition for ``key``."""
    if key is None:
        msg = "the key is null, an integer is needed"
        raise ValueError(msg)
    _number_of_text(key)


def _number_of_text(key: bytes | str) -> int:
    text = key.decode("latin-1") if isinstance(key, bytes) else key
    if _DECIMAL.fullmatch(text) is None:
        msg = f"key {key!r} is not a decimal number"
        raise ValueError(msg)
    return int(text)


class RoundRobinPartitioner:
    """One record after the other to one partition after the other, from 0; keys do not matter.

    State: how many records there were, modulo 2^32 as Kafka counts. One thread.
    """

    def __init__(self, partition_count: int) -> None:
        _ensure_count(partition_count)
        self._partition_count = partition_count
        self._counter = 0

    def __call__(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the partition of each row."""
        return self.partitions(batch.num_rows)

    def partitions(self, count: int) -> npt.NDArray[np.int32]:
        """Return the partitions of the next ``count`` records; int32."""
        numbers = np.arange(self._counter, self._counter + count, dtype=np.int64) & _POSITIVE
        self._counter = (self._counter + count) & _UINT32
        return (numbers % self._partition_count).astype(np.int32)


class IntegerKeyPartitioner:
    """Keys that are integers, modulo the number of partitions.

    ``partition = key mod partitions``, never negative: of 4 partitions, key 6 goes to partition 2
    and key -1 to partition 3. A key is an integer, or bytes or text of a decimal number: ASCII
    digits, perhaps a sign before them (``b"-12"``), nothing else. A record without a key has no
    partition here. No hash is taken, so consecutive keys go to consecutive partitions; Kafka's
    clients send the same bytes elsewhere, so a topic that they write to, too, needs
    `DefaultPartitioner`.
    """

    def __init__(self, partition_count: int) -> None:
        _ensure_count(partition_count)
        self._partition_count = partition_count

    def __call__(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the partition of each row."""
        return self.partition_column(batch.column("key"))

    def partition(self, key: int | bytes | str) -> int:
        """Return the partition of ``key``; `ValueError` if it is not a decimal number."""
        number = _number_of_text(key) if isinstance(key, bytes | str) else key
        return number % self._partition_count

    def partition_column(self, keys: pa.Array) -> npt.NDArray[np.int32]:
        """Return the partitions of many records."""
        if keys.null_count:
            row = keys.is_valid().to_pylist().index(False)
            msg = f"row {row}: the key is null, an integer is needed"
            raise ValueError(msg)
        if pa.types.is_integer(keys.type):
            wide = np.uint64 if keys.type == pa.uint64() else np.int64
            numbers = keys.to_numpy(zero_copy_only=False).astype(wide)
            partitions: npt.NDArray[np.int32] = (numbers % wide(self._partition_count)).astype(
                np.int32
            )
            return partitions
        binary_column(keys, "key")  # raises for what is neither bytes nor text
        return np.fromiter(self._of_texts(keys.to_pylist()), dtype=np.int32, count=len(keys))

    def _of_texts(self, keys: Sequence[bytes | str]) -> Iterator[int]:
        for row, key in enumerate(keys):
            try:
                yield self.partition(key)
            except ValueError as error:
                msg = f"row {row}: {error}"
                raise ValueError(msg) from error


UNASSIGNED = -1
"""Stands for a row whose partition the partitioner chooses."""

_INT16_MAX = 2**15 - 1
_NO_SIZES = np.empty(0, dtype=np.int64)
_RECORD_OVERHEAD = 8  # bytes of an encoded record beside key and value, about


def record_sizes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return about how many bytes each record takes, for a partitioner that balances bytes."""
    sizes = np.full(batch.num_rows, _RECORD_OVERHEAD, dtype=np.int64)
    for name in ("key", "value"):
        ends = binary_column(batch.column(name), name).ends
        if ends.size:
            sizes += np.diff(ends)
    return sizes


class PartitionAssignment:
    """Assigns rows to the partitions of one topic. One thread."""

    def __init__(
        self, topic: str, partitions: Collection[int], partitioner: Partitioner | None = None
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._partitioner = partitioner
        self._by_key: DefaultPartitioner | None = None

    def assign(
        self,
        batch: pa.RecordBatch,
        named: npt.NDArray[np.integer[Any]] | None,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the partition of each row."""
        if named is None:
            assigned = self._chosen(batch)
        else:
            is_open = named == UNASSIGNED
            assigned = named.astype(np.int64)
            if is_open.any():
                assigned[is_open] = self._chosen(batch.filter(pa.array(is_open)))
        known = np.fromiter(self._partitions, dtype=np.int64)
        is_unknown = ~np.isin(assigned, known)
        if is_unknown.any():
            at = int(is_unknown.argmax())
            row = at if rows is None else int(rows[at])
            there = ", ".join(map(str, self._partitions)) or "none"
            msg = (
                f"row {row} goes to partition {assigned[at]} of topic {self._topic!r}; "
                f"partitions that are there: {there}"
            )
            raise ValueError(msg)
        return assigned

    def _chosen(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        if self._partitioner is None and list(self._partitions) == [0]:
            return np.zeros(batch.num_rows, dtype=np.int64)
        partitioner = self._partitioner or self._by_key_now()
        chosen = np.asarray(partitioner(batch))
        if chosen.shape != (batch.num_rows,) or chosen.dtype.kind not in "iu":
            msg = (
                f"partitioner gave {chosen.dtype} of shape {chosen.shape}, expected "
                f"{batch.num_rows} integers"
            )
            raise ValueError(msg)
        return chosen.astype(np.int64)

    def _by_key_now(self) -> DefaultPartitioner:
        """Return the default partitioner over the partitions that are there now."""
        count = len(self._partitions)
        if set(range(count)) != set(self._partitions):
            msg = (
                f"partitions {', '.join(map(str, self._partitions))} of topic {self._topic!r} are "
                "here, not all from 0 on: a key then does not decide the partition; name "
                "the partition of each record"
            )
            raise ValueError(msg)
        if self._by_key is None or self._by_key.partition_count != count:
            self._by_key = DefaultPartitioner(count)
        return self._by_key


def rows_by_partition(
    assigned: npt.NDArray[np.int64],
) -> Iterator[tuple[int, npt.NDArray[np.intp] | None]]:
    """Yield each partition with its rows, in their order; None for all of them."""
    if not assigned.size:
        return
    first = int(assigned[0])
    if (assigned == first).all():
        yield first, None
        return
    fits = assigned.min() >= 0 and assigned.max() <= _INT16_MAX
    numbers = assigned.astype(np.int16) if fits else assigned  # NumPy sorts 16 bits by radix.
    order = np.argsort(numbers, kind="stable")  # Rows of a partition stay in order.
    in_order = numbers[order]
    starts = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    firsts = in_order[np.concatenate(([0], starts))]
    yield from zip(firsts.tolist(), np.split(order, starts), strict=True)


_BY_NAME: dict[str, Callable[[int], Partitioner | None]] = {
    "default": lambda count: None if count == 1 else DefaultPartitioner(count),
    "round_robin": RoundRobinPartitioner,
    "integer_key": IntegerKeyPartitioner,
}


def ensure_known_partitioner(partitioner: str | Partitioner) -> None:
    """Raise ``ValueError`` unless it is a function or the name of a partitioner."""
    if not callable(partitioner) and partitioner not in _BY_NAME:
        known = ", ".join(PARTITIONER_NAMES)
        msg = f"partitioner {partitioner!r} is neither a function nor one of {known}"
        raise ValueError(msg)


def partitioner_for(chosen: str | Partitioner, count: int) -> Partitioner | None:
    """Return what chooses among ``count`` partitions; None if there is nothing to choose."""
    return chosen if callable(chosen) else _BY_NAME[chosen](count)


class NamedPartitioner:
    """A partitioner by name, over as many partitions as a topic has at each call. One thread."""

    def __init__(self, name: str, partitions: Sized) -> None:
        self._name = name
        self._partitions = partitions
        self._count = 0
        self._partitioner: Partitioner | None = None

    def __call__(self, batch: pa.RecordBatch) -> npt.ArrayLike:
        """Return the partition of each row."""
        if self._partitioner is None or self._count != len(self._partitions):
            self._count = len(self._partitions)
            chosen = partitioner_for(self._name, self._count)
            self._partitioner = chosen or DefaultPartitioner(self._count)
        return self._partitioner(batch)
