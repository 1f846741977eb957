"""Logs that grow while a test follows them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pylog
from pylog import TopicPartition
from tests.support.batches import batch_v2, plain_records

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import FollowedDirectory

ORDERS = TopicPartition("orders", 0)


def ends(followed: FollowedDirectory) -> dict[str, int]:
    return {str(each): log.end_offset for each, log in followed.refresh().items()}


def batch(base: int, count: int = 2) -> bytes:
    return batch_v2(plain_records(base, count)).data


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def settle(log_directory: Path) -> None:
    """Let a minute pass for every file and directory: what a look then remembers holds."""
    then = time.time() - 60
    for path in [log_directory, *log_directory.rglob("*")]:
        os.utime(path, (then, then))
    time.sleep(0.02)  # nobody can set back when that was


def offsets_read(followed: FollowedDirectory) -> list[int]:
    read: list[int] = pylog.scan(followed.directory).to_table().column("offset").to_pylist()
    return read


def transactional(base: int, *, producer_id: int = 1) -> bytes:
    return batch_v2(plain_records(base, 1), producer_id=producer_id, is_transactional=True).data
