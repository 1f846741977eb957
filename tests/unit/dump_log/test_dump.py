"""What a dump prints, beyond what Kafka's tool was asked about: options, ranges, JSON, damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from tests.support.log_files import segment_path, write_partition
from tests.unit.dump_log.dumped import BATCHES, text_of, write_log

if TYPE_CHECKING:
    from pathlib import Path


def test_a_directory_is_all_its_files_by_name(tmp_path: Path) -> None:
    partition = write_partition(tmp_path, {0: BATCHES[:2], 10: BATCHES[2:]})
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    segment_path(partition, 5, ".log.deleted").write_bytes(b"")
    names = [line for line in text_of(partition) if line.startswith("Dumping")]
    assert names == [
        f"Dumping {segment_path(partition, base, suffix)}"
        for base in (0, 10)
        for suffix in (".index", ".log", ".timeindex")
    ]
    with_range = [line for line in text_of(partition, start_offset=10) if "Dumping" in line]
    assert with_range == [f"Dumping {segment_path(partition, 10)}"]


def test_topics_and_partitions_of_a_log_directory_are_chosen_by_name(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "other-0", "__consumer_offsets-3"):
        write_partition(tmp_path, {0: BATCHES[:1]}, name=name)

    def partitions(**options: Any) -> set[str]:  # noqa: ANN401
        lines = text_of(tmp_path, **options)
        return {line.split("/")[-2] for line in lines if line.startswith("Dumping")}

    assert partitions() == {"orders-0", "orders-1", "other-0"}
    assert partitions(topics=["orders"]) == {"orders-0", "orders-1"}
    assert partitions(topics=["orders"], partitions=[1]) == {"orders-1"}
    assert partitions(topics=["__consumer_offsets"]) == {"__consumer_offsets-3"}
    with pytest.raises(UnknownTopicOrPartitionError, match="nope"):
        text_of(tmp_path, topics=["nope"])


def test_other_files_follow_one_that_cannot_be_read(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    missing = segment_path(tmp_path, 77)
    dumped = pylog.dump(missing, path)
    text = b"".join(map(bytes, dumped)).decode()
    assert text.startswith(f"Dumping {missing}\nLog starting offset: 77\nDumping {path}\n")
    assert dumped.reports[0].is_unreadable
    assert dumped.is_readable
    assert not dumped.is_sound


def test_a_path_that_leads_to_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="no such file or directory"):
        pylog.dump(tmp_path / "orders-0")
