"""Partitions with transactions, and their rows in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog
from tests.support.batches import Built, batch_v2, plain_records

if TYPE_CHECKING:
    from pathlib import Path


def data(offset: int, *, sequence: int = 4, producer_id: int = 1, count: int = 2) -> Built:
    return batch_v2(
        plain_records(offset, count),
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=sequence,
        is_transactional=True,
    )


def rows(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pylog.read_table(directory, "transactions").to_pylist()
    return found
