from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog.jobs import restore_groups
from pylog.model import TopicPartition
from pylog.recovery.mirrored_offsets import read_mirrored_offsets
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

T = TopicPartition("t", 0)


def syncs(directory: Path, *records: tuple[str, int, int, int], name: str = "old") -> Path:
    batch = [
        Stored(
            at,
            1,
            struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">i", partition),
            struct.pack(">qq", *offsets),
        )
        for at, (topic, partition, *offsets) in enumerate(records)
    ]
    write_partition(directory, {0: [batch_v2(batch)]}, name=f"mm2-offset-syncs.{name}.internal-0")
    return directory


def test_a_group_goes_on_at_a_sync_or_right_after_it(tmp_path: Path) -> None:
    found = read_mirrored_offsets(syncs(tmp_path, ("t", 0, 10, 3), ("t", 0, 20, 12)))
    assert [found.position(T, old) for old in (9, 10, 11, 19, 20, 21, 99)] == [
        None,  # the group was before the first sync that is left
        *(3, 4, 4, 12, 13, 13),
    ]
    assert (T in found, TopicPartition("t", 1) in found) == (True, False)


def test_a_topic_that_was_mirrored_anew_begins_again(tmp_path: Path) -> None:
    found = read_mirrored_offsets(syncs(tmp_path, ("t", 0, 10, 30), ("t", 0, 11, 0)))
    assert [found.position(T, old) for old in (10, 11)] == [None, 0]


def test_what_has_no_syncs_or_those_of_two_clusters_is_refused(tmp_path: Path) -> None:
    write_partition(tmp_path / "none", {0: []}, name="t-0")
    with pytest.raises(LogDirectoryError, match="no topic mm2-offset-syncs"):
        read_mirrored_offsets(tmp_path / "none")
    both = syncs(syncs(tmp_path / "both", ("t", 0, 1, 1)), ("t", 0, 1, 1), name="other")
    with pytest.raises(LogDirectoryError, match="several topics"):
        read_mirrored_offsets(both)


def test_groups_get_the_positions_and_names_of_the_mirror(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    source = golden_root.case("4.3.0/internal-logdir")
    mirror = syncs(tmp_path / "mirror", ("orders", 1, 9, 2), ("invoices-eu", 0, 39, 7))
    done = restore_groups(source, to=tmp_path / "new", offset_map=mirror, topic_prefix="old.")
    assert [(each.topic, each.before, each.offset) for each in done.offsets] == [
        ("old.orders", 9, 2),
        ("old.invoices-eu", 39, 7),
    ]
    late = syncs(tmp_path / "late", ("orders", 1, 10, 2), ("invoices-eu", 0, 39, 7))
    done = restore_groups(source, to=tmp_path / "other", offset_map=late)
    assert "before the first offset sync that is left: grp-late in orders-1" in done.losses
