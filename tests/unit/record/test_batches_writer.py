"""Header fields of many batches at once; the expected bytes are those of whole other batches."""

from __future__ import annotations

import numpy as np

from pylog.record.batches_writer import (
    set_append_times,
    set_base_offsets,
    set_partition_leader_epochs,
)
from tests.support.batches import batch_v2, joined, plain_records

COUNTS = (1, 3, 2)
CODECS = ("none", "lz4", "none")


def test_offsets_epochs_and_append_times_are_put_where_they_belong() -> None:
    given = [
        batch_v2(plain_records(0, count), codec=codec)
        for count, codec in zip(COUNTS, CODECS, strict=True)
    ]
    view = memoryview(bytearray(b"before" + joined(given) + b"after"))
    sizes = np.array([len(each.data) for each in given])
    ends = 6 + np.cumsum(sizes)
    positions = ends - sizes
    set_base_offsets(view, positions, np.array([2**40, 2**62, 5]))
    set_partition_leader_epochs(view, positions, 2**31 - 1)
    moved = [
        offset.to_bytes(8, "big") + each.data[8:12] + b"\x7f\xff\xff\xff" + each.data[16:]
        for each, offset in zip(given, (2**40, 2**62, 5), strict=True)
    ]
    assert bytes(view) == b"before" + b"".join(moved) + b"after"
    set_base_offsets(view, positions, 0)
    set_partition_leader_epochs(view, positions, 0)
    set_append_times(view, positions, ends, np.array([0, 3, 0]), 1_700_000_000_123)
    stamped = [
        batch_v2(plain_records(0, count), codec=codec, append_time=1_700_000_000_123)
        for count, codec in zip(COUNTS, CODECS, strict=True)
    ]
    assert bytes(view) == b"before" + joined(stamped) + b"after"
