"""Table ``findings``: what is wrong with a log, and what is worth knowing; no row if nothing is.

============= ======= =================================================================
column        type    meaning
============= ======= =================================================================
severity      string  ``error``: records are lost or cannot be read, or a broker does not start;
                      ``warning``: a side file that a broker would rebuild, delete or ignore;
                      ``info``: worth knowing, and nothing is wrong
code          string  what it is, in one word; docs/operators.md lists all
path          string  the file
position      int64   bytes from here on, where that has a meaning
end_position  int64   up to here, exclusive
next_offset   int64   offsets from here on, where that has a meaning
end_offset    int64   up to here, exclusive; null where nothing sound follows
message       string  what is wrong, with stored and expected values
broker_action string  what a broker does about it when it starts on the directory
advice        string  what to do
============= ======= =================================================================

All is read, in one walk: checksums are verified and records decoded, headers held against indexes.
Memory is that of one window, of the indexes of two segments, and of what snapshots say. A file that
cannot be read at all (a FIFO, a link that leads nowhere) is a damaged one.

Rows about log directories come first, and have neither topic nor partition: what lies beside the
partitions, and what these contradict each other in. They are of all partitions, whichever are
chosen, and there are none where partition directories are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.inspect.findings.log_directory_findings import (
    check_log_directories,
    findings_between,
)
from pylog.inspect.findings.partition_check import check_partition
from pylog.inspect.tables.row_batches import array_of, record_batches, table_schema
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.findings.finding import Finding
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

FINDINGS_SCHEMA = table_schema(
    ("severity", pa.string()),
    ("code", pa.string()),
    ("path", pa.string()),
    ("position", pa.int64()),
    ("end_position", pa.int64()),
    ("next_offset", pa.int64()),
    ("end_offset", pa.int64()),
    ("message", pa.string()),
    ("broker_action", pa.string()),
    ("advice", pa.string()),
)


def findings_of(
    view: LogView, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the findings about one partition: its ``.log`` files, indexes, then all else.

    A batch that has more than ``max_decompressed_bytes``, decompressed, is a finding.

    Raises
    ------
    SegmentVanishedError
        A broker deletes or compacts the log faster than it can be looked at.
    """
    check = check_partition(view, max_decompressed_bytes=max_decompressed_bytes)
    rows = (finding.row() for finding in check.findings)
    return record_batches(view.topic_partition, rows, FINDINGS_SCHEMA)


def findings_of_directories(directory: LogDirectory) -> Iterator[pa.RecordBatch]:
    """Yield the findings about the log directories themselves, each directory's together."""
    checks = check_log_directories(directory)
    between: dict[str, list[Finding]] = {}
    if checks:
        for path, finding in findings_between(checks, directory):
            between.setdefault(path, []).append(finding)
    rows: list[tuple[object, ...]] = [
        (None, None, *finding.row())
        for check in checks
        for finding in [*check.findings, *between.get(check.path, ())]
    ]
    if rows:
        yield from table_of_rows(rows).to_batches()


def table_of_rows(rows: list[tuple[object, ...]]) -> pa.Table:
    """Return a table of rows that begin with topic and partition, which may be None."""
    columns = zip(*rows, strict=True) if rows else [()] * len(FINDINGS_SCHEMA)
    arrays = [
        array_of(values, field.type) for values, field in zip(columns, FINDINGS_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=FINDINGS_SCHEMA)
