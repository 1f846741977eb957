"""Control batches of a window: what type they are, and whether they can be read at all.

No row comes of them, so that nobody decodes them; yet one that breaks its format may have been the
marker that aborts a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels.decode_control import NEEDS_REFERENCE, decode_control_types
from pylog.model import ControlRecordType
from pylog.record.batch_layout import CONTROL_FLAG_MASK
from pylog.record.control_record import parse_control_record_type
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchScan
    from pylog.record.window import Window


@dataclass(frozen=True, slots=True)
class BadControlBatch:
    """The first control batch of a scan that cannot be read; ``index`` counts batches."""

    index: int
    reason: str


def control_types(scan: BatchScan | Window, which: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the `ControlRecordType` of the control batches with indexes ``which``.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        One breaks its format; `pylog.reading.checked_windows` yields none where it looks at
        checksums.
    """
    types = _usual_types(scan, which)
    for place in np.flatnonzero(types == NEEDS_REFERENCE).tolist():
        types[place] = _type_by_reference(scan, int(which[place]))
    return types


def find_bad_control_batch(scan: BatchScan | Window, before: int) -> BadControlBatch | None:
    """Return the first control batch whose records break the format, None if all can be read.

    Only batches with an index below ``before`` are looked at: those whose checksums are right.
    Kafka's consumer fails at such a batch, too; it looks at keys only where it reads committed
    records.
    """
    headers = scan.headers
    if not len(headers) or not headers.traits.any_has(CONTROL_FLAG_MASK):
        return None
    which = np.flatnonzero(headers.is_control[:before])
    types = _usual_types(scan, which)
    for index in which[types == NEEDS_REFERENCE].tolist():
        try:
            _type_by_reference(scan, index)
        except (CorruptRecordError, InvalidRecordError) as error:
            return BadControlBatch(index, f"control batch cannot be read: {error.reason}")
    return None


def _usual_types(scan: BatchScan | Window, which: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    headers = scan.headers
    types = np.full(which.size, NEEDS_REFERENCE, dtype=np.int64)
    plain = (headers.codec_ids[which] == 0) & (headers.record_counts[which] == 1)
    plain_types = types[plain]
    decode_control_types(
        scan.buffer, headers.positions[which][plain], headers.sizes_bytes[which][plain], plain_types
    )
    types[plain] = plain_types
    return types


def _type_by_reference(scan: BatchScan | Window, index: int) -> ControlRecordType:
    """Return the type of the first record of any control batch; all are looked at."""
    data = scan.buffer.data[int(scan.headers.positions[index]) :]
    types = [parse_control_record_type(record.key) for record in RecordBatch(data).records()]
    return types[0] if types else ControlRecordType.UNKNOWN
