"""Whose batches are damaged, as far as their headers say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, LogStorageError
from pylog.files.storage import open_file
from pylog.log_file.batch_walk import read_header
from pylog.model import NO_PRODUCER_ID
from pylog.text.words import named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.damage import DamagedRange

_MOST_BATCHES = 1_000


def producers_text(damaged: DamagedRange) -> str | None:
    """Return which producers the headers in a damaged range name; None if they name none."""
    try:
        found = dict.fromkeys(_producers(damaged))
    except LogStorageError:
        return None  # the file is gone, or cannot be read
    if not found:
        return None
    names = [f"{producer_id} (epoch {epoch})" for producer_id, epoch in found]
    if len(names) == 1:
        return f"the header names producer {names[0]}"
    return f"the headers name producers {named(names)}"


def _producers(damaged: DamagedRange) -> Iterator[tuple[int, int]]:
    """Yield producer ids and epochs, up to where no batch begins at the next byte."""
    if damaged.is_unreadable:
        return
    position, end = damaged.position, damaged.end_position
    with open_file(damaged.path) as source:
        for _ in range(_MOST_BATCHES):
            try:
                batch = read_header(source, position, end)
            except CorruptRecordError:
                return
            if batch is None:
                return
            producer_id = batch.header.producer_id
            if producer_id > NO_PRODUCER_ID:
                yield producer_id, batch.header.producer_epoch
            position = batch.end_position
