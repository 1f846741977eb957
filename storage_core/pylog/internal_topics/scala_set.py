"""The order in which Scala's ``mutable.Set`` gives partitions back, which old tools print.

Elements are in a table of 2^n chains, by their hash code; a chain is sorted by hash code. How
large the table is depends on how the elements came: it makes room for a set that is added as
if it were the only one, and grows at three quarters while elements of small sets are added
one by one.

Source: scala.collection.mutable.HashSet (Scala 2.13), TopicPartition.hashCode (Kafka 4.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_TABLE = 16
_SMALL_SET = 4  # Scala has classes of their own for immutable sets of up to so many


def scala_set_order(topics: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, int]]:
    """Return partitions, topic and number, each once, in the order of the set of them."""
    hashes: dict[tuple[str, int], int] = {}
    chains = _FIRST_TABLE
    for topic, numbers in topics:
        added = dict.fromkeys((topic, number) for number in numbers)
        chains = max(chains, _table_for(len(added)))
        for each in added:
            if len(added) <= _SMALL_SET and len(hashes) + 1 >= chains * 3 // 4:
                chains *= 2
            hashes[each] = _spread(_hash_code(*each))
    return sorted(hashes, key=lambda each: (hashes[each] & (chains - 1), _signed(hashes[each])))


def _table_for(size: int) -> int:
    """Return the length of the table that is made for ``size`` elements."""
    capacity = (size + 1) * 4 // 3
    return 2 << (max(capacity - 1, 4).bit_length() - 1)


def _hash_code(topic: str, partition: int) -> int:
    """Return ``TopicPartition.hashCode`` as an unsigned int32."""
    return (31 * (31 + partition) + _string_hash(topic)) & 0xFFFFFFFF


def _string_hash(text: str) -> int:
    """Return ``String.hashCode``, over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value


def _spread(value: int) -> int:
    return value ^ (value >> 16)


def _signed(value: int) -> int:
    return value - 0x1_0000_0000 if value >= 0x8000_0000 else value
