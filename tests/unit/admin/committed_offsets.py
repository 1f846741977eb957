"""Records of committed offsets, and the groups that come of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tests.support.batches import Built, Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    import pylog

CASE = "4.3.0/internal-logdir"


def commit_key(group: str, topic: str, partition: int) -> bytes:
    texts = b"".join(struct.pack(">h", len(each)) + each.encode() for each in (group, topic))
    return b"\x00\x01" + texts + struct.pack(">i", partition)


def commit_value(offset: int, metadata: str = "") -> bytes:
    data = metadata.encode()
    head = struct.pack(">hqih", 3, offset, 5, len(data))
    return head + data + struct.pack(">q", 1000)


def commits(
    *records: tuple[int, int, int | None],
    **options: Any,  # noqa: ANN401 - as of batch_v2
) -> Built:
    """Return a batch of commits: offset in the log, partition of "orders", what is committed."""
    return batch_v2(
        [
            Stored(
                at,
                1000 * at,
                commit_key("g", "orders", partition),
                None if committed is None else commit_value(committed),
            )
            for at, partition, committed in records
        ],
        **options,
    )


def written(directory: Path, batches: list[Built]) -> Path:
    write_partition(directory, {batches[0].base_offset: batches}, name="__consumer_offsets-0")
    return directory


def committed(listing: pylog.results.GroupListing) -> dict[tuple[str, str, int], int | None]:
    return {
        (group.group_id, each.topic, each.partition): each.offset
        for group in listing.groups
        for each in group.offsets
    }
