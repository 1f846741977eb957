"""The order in which Scala's ``mutable.Set`` gives partitions back, which old tools print.

Elements lie in a table of 2^n chains, by their hash code; a chain is sorted by hash code. The table
is doubled when it holds three quarters as many elements as it has chains.

Source: scala.collection.mutable.HashSet (Scala 2.13), TopicPartition.hashCode (Kafka 4.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_TABLE = 16


def scala_set_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return partitions, topic and number, each once, in the order of the set of them."""
    distinct = list(dict.fromkeys(partitions))
    chains = _FIRST_TABLE
    while len(distinct) >= chains * 3 // 4:
        chains *= 2
    hashes = {each: _spread(_hash_code(*each)) for each in distinct}
    return sorted(distinct, key=lambda each: (hashes[each] & (chains - 1), _signed(hashes[each])))


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
