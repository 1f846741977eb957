"""Directories of segments, and their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import Built, batch_v2, plain_records
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path


OLD = {base: [batch_v2(plain_records(base, 5))] for base in (0, 5, 10, 15)}


def cleaned(*offsets: int) -> list[Built]:
    return [batch_v2(plain_records(offset, 1)) for offset in offsets]


def offsets(directory: Path) -> list[int]:
    return [record.offset for record in scanned(directory)]
