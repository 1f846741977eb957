"""The records of one batch, read one by one by the readable reference, up to its first fault."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.inspect.dump.record_arrays import RecordArrays
from pylog.record.batch_layout import MAGIC_OFFSET, MAGIC_VALUE_V2
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import StoredMessage, iter_stored_messages
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.record.record import Record


class SingleBatch:
    """Gives the records of a batch in parts.

    Parameters
    ----------
    data
        Exactly its bytes.
    max_decompressed_bytes
        What it may have, decompressed.

    Attributes
    ----------
    fault
        What ended the reading; None where nothing has.
    is_finished
        Whether all records have been given, or all before the fault.
    """

    def __init__(self, data: memoryview, max_decompressed_bytes: int) -> None:
        self.fault: str | None = None
        self.is_finished = False
        decompressor = Decompressor(max_decompressed_bytes)
        self._is_v2 = data[MAGIC_OFFSET] >= MAGIC_VALUE_V2
        self._reading: Iterator[Record | StoredMessage] = (
            RecordBatch(data, decompressor).unassigned_records()
            if self._is_v2
            else iter_stored_messages(data, decompressor)
        )

    def next_part(self, most: int) -> RecordArrays:
        """Return the next records, ``most`` of them at the most."""
        taken: list[Record | StoredMessage] = []
        try:
            taken.extend(islice(self._reading, most))
        except (CorruptRecordError, InvalidRecordError) as error:
            self.fault = error.reason
        self.is_finished = len(taken) < most
        if self._is_v2:
            return RecordArrays.of_records(taken)  # type: ignore[arg-type]
        return RecordArrays.of_messages(taken)  # type: ignore[arg-type]
