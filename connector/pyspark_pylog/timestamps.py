"""Column ``timestamp`` of records: a TIMESTAMP, or the milliseconds that the log has.

A TIMESTAMP holds microseconds, and milliseconds may be a number too large for it: of a producer
that took another unit. Mode PERMISSIVE makes null of such a one, with the reason in
``_corrupt_record``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pylog
from pylog import ReadMode
from pyspark_pylog.options import MILLISECONDS

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_pylog.options import ReadOptions

TIMESTAMP = "timestamp"
_REASON = "_corrupt_record"
_MOST_MILLISECONDS = (2**63 - 1) // 1000
ADVICE_ON_TIMES = ": read with option timestampUnit=milliseconds"
_TOO_FAR = f"ms is more than a TIMESTAMP holds{ADVICE_ON_TIMES}"


class TimestampColumn(NamedTuple):
    """Makes of milliseconds what option ``timestampUnit``, or the mode, asks for."""

    decoded: pa.Schema  # of the records as they are read
    wanted: pa.Schema

    @classmethod
    def of(cls, wanted: pa.Schema, options: ReadOptions) -> TimestampColumn | None:
        """Return what converts records; None where they are read as they are wanted."""
        place = wanted.get_field_index(TIMESTAMP)
        is_converted = options.timestamp_unit == MILLISECONDS or options.mode is ReadMode.PERMISSIVE
        if place < 0 or not is_converted:
            return None
        [field] = pylog.record_schema([TIMESTAMP], timestamp_unit="ms")
        return cls(wanted.set(place, field.with_nullable(wanted.field(place).nullable)), wanted)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of records with the column as it is wanted."""
        import pyarrow as pa  # noqa: PLC0415 - workers alone need it
        import pyarrow.compute as pc  # noqa: PLC0415

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        milliseconds = columns[TIMESTAMP].view(pa.int64())
        if self.wanted.field(TIMESTAMP).type == pa.int64():
            columns[TIMESTAMP] = milliseconds
            return pa.RecordBatch.from_arrays([*columns.values()], schema=self.wanted)
        is_far = pc.or_(
            pc.greater(milliseconds, _MOST_MILLISECONDS), pc.less(milliseconds, -_MOST_MILLISECONDS)
        )
        near = pc.if_else(is_far, pa.scalar(None, pa.int64()), milliseconds)
        columns[TIMESTAMP] = pc.multiply(near, 1000).cast(self.wanted.field(TIMESTAMP).type)
        if _REASON in columns:
            reason = pc.binary_join_element_wise(
                "timestamp", milliseconds.cast(pa.string()), _TOO_FAR, " "
            )
            columns[_REASON] = pc.if_else(
                is_far.fill_null(pa.scalar(value=False)), reason, columns[_REASON]
            )
        return pa.RecordBatch.from_arrays([*columns.values()], schema=self.wanted)
