"""Which topic-partitions share an input partition: many small ones do, as Spark packs small files.

One task of a Python source costs Spark tens of milliseconds, however little it reads. Where a log
directory holds thousands of small topic-partitions, that is nearly all of a query's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark_pylog.options import LoadOptions

MANY = 200
"""More tasks than these are packed, into no fewer: the process that plans does not know how many
cores the session has, and few sessions have more."""
OPENING_COST_BYTES = 4 << 20
"""What opening a topic-partition counts for, as Spark's ``spark.sql.files.openCostInBytes``."""
_Item = TypeVar("_Item")


def pack(
    items: Sequence[_Item],
    options: LoadOptions,
    size_of: Callable[[_Item], int],
    offsets_of: Callable[[_Item], int],
    *,
    opening_cost_bytes: int = OPENING_COST_BYTES,
) -> Iterator[tuple[_Item, ...]]:
    """Yield ``items`` in groups, one for each input partition. Order is kept.

    As Spark's ``FilePartition.maxSplitBytes``: a group is as large as makes `MANY` groups (in mode
    "auto"), or ``min_partitions`` if that is more, and not larger than ``max_partition_bytes``,
    opening costs included, or ``max_records_per_partition`` offsets. A single item may be.
    """
    least = options.min_partitions or 1
    if options.pack_partitions == "auto":
        least = max(least, MANY)
    if options.pack_partitions == "false" or len(items) <= least:
        yield from ((item,) for item in items)
        return
    weights = [size_of(item) + opening_cost_bytes for item in items]
    most_weight = min(options.max_partition_bytes, -(-sum(weights) // least))
    most_offsets = options.max_records_per_partition
    group: list[_Item] = []
    weight = offsets = given = 0
    for place, item in enumerate(items):
        weight += weights[place]
        offsets += offsets_of(item)
        # Those that follow could each be a group of their own, and that would still be too few.
        is_needed = given + len(items) - place < least
        is_over = weight > most_weight or (most_offsets is not None and offsets > most_offsets)
        if group and (is_over or is_needed):
            yield tuple(group)
            given += 1
            group, weight, offsets = [], weights[place], offsets_of(item)
        group.append(item)
    yield tuple(group)
