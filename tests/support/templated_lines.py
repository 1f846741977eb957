"""What a template of lines makes of records with given keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.dump_log.lines import records_of as as_records
from pylog.model import TimestampType
from pylog.record.record import Record
from pylog.record_lines.line_template import write_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pylog.record_lines.line_template import LineTemplate, Records


def records_of(values: Sequence[bytes | None]) -> Records:
    return as_records(
        [
            Record(offset, 0, TimestampType.CREATE_TIME, key=value, value=None)
            for offset, value in enumerate(values)
        ]
    )


def lines_of(
    template: LineTemplate, records: Records, table: npt.NDArray[np.int64] | None = None
) -> bytes:
    if table is None:
        table = np.zeros((1, 1), dtype=np.int64)
    rows = np.zeros(len(table), dtype=np.int64)
    rows[0] = records.rows
    return b"".join(bytes(part) for part in write_lines(template, table, rows, records))
