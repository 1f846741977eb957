"""Where stretches of v0 and v1 begin: at the first offset within a compressed message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.comparison.batch_join import BatchJoin
from pylog.comparison.legacy_batches import find_first_offsets
from pylog.comparison.replica_log import ReplicaLog, directories_of
from tests.support.batches import batch_v2, message, plain_records, wrapper
from tests.support.damage import with_flip
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


def starts_of(directory: Path) -> list[tuple[int, int]]:
    (found,) = directories_of(str(directory))
    replica = ReplicaLog(found)
    stretches = BatchJoin([replica.rows(skips_damage=True)], [[]]).run()
    find_first_offsets(stretches, [replica])
    return [(each.start_offset, each.end_offset) for each in stretches]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_a_wrapper_begins_at_its_first_message(magic: int, codec: str, tmp_path: Path) -> None:
    parts = [wrapper(plain_records(at, 4), magic=magic, codec=codec) for at in range(0, 20, 4)]
    parts[2] = with_flip(parts[2], 30)
    assert starts_of(write_partition(tmp_path, {0: parts})) == [(0, 8), (12, 20)]


def test_messages_that_are_not_compressed_and_batches_of_v2_begin_where_they_say(
    tmp_path: Path,
) -> None:
    parts = [
        message(plain_records(3, 1)[0], magic=1),
        with_flip(message(plain_records(4, 1)[0], magic=1), 30),
        batch_v2(plain_records(5, 3), leader_epoch=-1),
        wrapper(plain_records(8, 2), magic=1, codec="gzip"),
    ]
    assert starts_of(write_partition(tmp_path, {0: parts})) == [(3, 4), (5, 10)]
