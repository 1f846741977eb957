"""Side files that brokers wrote, read and written again: every byte must be the same."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.clean_shutdown import (
    UNKNOWN_BROKER_EPOCH,
    read_clean_shutdown,
    write_clean_shutdown,
)
from pylog.files.durable_io import DurableIO
from pylog.files.leader_epochs import (
    read_leader_epoch_checkpoint,
    write_leader_epoch_checkpoint,
)
from pylog.files.partition_metadata import read_partition_metadata, write_partition_metadata
from pylog.files.producer_snapshot import read_producer_snapshot, write_producer_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot

CASES = {
    "0.10.0.1/plain": {"checkpoint"},
    "0.11.0.3/txn": {"checkpoint", "epochs", "snapshot"},
    "2.8.2/internal-logdir": {"checkpoint", "epochs", "snapshot"},
    "3.9.1/replicas": {"checkpoint", "clean", "epochs", "metadata", "snapshot"},
    "4.3.0/crash-kill": {"checkpoint", "clean", "epochs", "metadata", "snapshot"},
    "4.3.0/internal-logdir": {"checkpoint", "clean", "epochs", "metadata", "snapshot"},
    "4.3.0/tiered": {"checkpoint", "clean", "epochs", "metadata", "snapshot"},
    "4.3.0/txn": {"checkpoint", "clean", "epochs", "metadata", "snapshot"},
}
NAMES = {
    "checkpoint": re.compile(r"(recovery-point|log-start|cleaner|replication)-offset-checkpoint"),
    "clean": re.compile(r"\.kafka_cleanshutdown"),
    "epochs": re.compile(r"leader-epoch-checkpoint"),
    "metadata": re.compile(r"partition\.metadata"),
    "snapshot": re.compile(r"\d{20}\.snapshot"),
}


def rewrite_clean_shutdown(io: DurableIO, golden: Path, copy: Path) -> None:
    found = read_clean_shutdown(golden)
    assert found is not None
    epoch = UNKNOWN_BROKER_EPOCH if found.broker_epoch is None else found.broker_epoch
    write_clean_shutdown(io, copy, epoch)


REWRITES: dict[str, Callable[[DurableIO, Path, Path], None]] = {
    "checkpoint": lambda io, golden, copy: write_offset_checkpoint(
        io, copy, read_offset_checkpoint(golden)
    ),
    "clean": rewrite_clean_shutdown,
    "epochs": lambda io, golden, copy: write_leader_epoch_checkpoint(
        io, copy, read_leader_epoch_checkpoint(golden)
    ),
    "metadata": lambda io, golden, copy: write_partition_metadata(
        io, copy, read_partition_metadata(golden).topic_id
    ),
    "snapshot": lambda io, golden, copy: write_producer_snapshot(
        io, copy, read_producer_snapshot(golden), sync=False
    ),
}


@pytest.mark.parametrize("case_id", CASES)
def test_what_a_broker_wrote_is_written_again_byte_for_byte(
    case_id: str, golden_root: GoldenRoot, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    for golden in golden_root.case(case_id).rglob("*"):
        for what, name in NAMES.items():
            # Empty: brokers create checkpoints before they know an entry, and, before 3.7, said
            # nothing about a clean shutdown but that it was one.
            if name.fullmatch(golden.name) and golden.stat().st_size:
                seen[what] += 1
                copy = tmp_path / f"{what}-{seen[what]}"
                REWRITES[what](DurableIO(), golden, copy)
                assert copy.read_bytes() == golden.read_bytes(), golden
    assert set(seen) == CASES[case_id]
