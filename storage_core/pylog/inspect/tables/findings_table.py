"""Table ``findings``: what is wrong with a log, and what is worth knowing; no row if nothing is.

============ ======= ==================================================================
column       type    meaning
============ ======= ==================================================================
severity     string  ``error``: records are lost or cannot be read; ``warning``: a side file
                     that a broker would rebuild, delete or ignore; ``note``: worth knowing,
                     and nothing is wrong
code         string  what it is, in one word
path         string  the file
position     int64   bytes from here on, where that has a meaning
end_position int64   up to here, exclusive
next_offset  int64   offsets from here on, where that has a meaning
end_offset   int64   up to here, exclusive; null where nothing sound follows
message      string
============ ======= ==================================================================

All is read: checksums are verified and records decoded, headers held against indexes. The log is
walked up to three times; memory is that of one window and the indexes of one segment.

Codes: damaged_batches, filled_empty_batch, damaged_manifest (errors). unreadable (error: the
directory, or a disk that fails; what would follow is not known). missing_log (an error where no
``.log`` is left, else a warning). misnamed_log; missing_, damaged_, wrong_ with index, time_index
or transaction_index; damaged_snapshot, damaged_checkpoint, damaged_metadata; leader_epoch_back,
leader_epoch_disagrees; high_watermark_, recovery_point_, cleaner_offset_ and
log_start_offset_above_log_end (warnings). torn_tail, zero_tail, leftover_file, no_time_indexes,
remote_offsets, pending_commit (notes). A file that cannot be read at all (a FIFO, a link that leads
nowhere) is a damaged one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.errors import LogDirectoryError
from pylog.inspect.findings.directory_findings import directory_findings
from pylog.inspect.findings.epoch_findings import EpochFindings
from pylog.inspect.findings.finding import Finding, Severity
from pylog.inspect.findings.index_findings import IndexFindings
from pylog.inspect.findings.log_findings import damage_findings, empty_batch_findings, tail_findings
from pylog.inspect.findings.missing_time_indexes import MissingTimeIndexes
from pylog.inspect.findings.side_file_findings import (
    checkpoint_findings,
    leftover_findings,
    read_epochs,
    snapshot_findings,
)
from pylog.inspect.findings.transaction_findings import transaction_findings
from pylog.inspect.header_windows import SegmentHeaders
from pylog.inspect.tables.row_batches import record_batches, table_schema
from pylog.reading.damage import DamageReport
from pylog.reading.pending_commit import NoPendingCommit
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    # Whatever the caller does at damage: here it is what is asked for.
    view = view.refreshed(DamageReport(is_logged=False))
    rows = (finding.row() for finding in _findings(view, max_decompressed_bytes))
    return record_batches(view.topic_partition, rows, FINDINGS_SCHEMA)


def _findings(view: LogView, max_decompressed_bytes: int) -> Iterator[Finding]:
    """Yield all findings, or those before a directory or file that cannot be read, and that."""
    try:
        yield from _findings_in_files(view, max_decompressed_bytes)
    except LogDirectoryError as error:
        path = view.directory.path if error.path is None else str(error.path)
        yield Finding(Severity.ERROR, "unreadable", path, error.reason, error.position)


def _findings_in_files(view: LogView, max_decompressed_bytes: int) -> Iterator[Finding]:
    about_directory = list(directory_findings(view))
    # What is wrong with files does not depend on whether readers are given what is in them.
    view = view.refreshed(view.damage, pending=NoPendingCommit(view.directory.log_directory))
    damaged = list(damage_findings(view, max_decompressed_bytes))
    yield from damaged
    yield from about_directory
    yield from tail_findings(view)
    epochs, unreadable = read_epochs(view)
    epoch_findings = EpochFindings(view, epochs)
    missing_time_indexes = MissingTimeIndexes(view)
    end = view.segments[-1].base_offset if view.segments else 0
    for index, segment in enumerate(view.segments):
        headers = SegmentHeaders(view, index)
        path = segment.file_path()
        indexes = IndexFindings(segment, [each for each in damaged if each.path == path])
        for window in headers:
            yield from empty_batch_findings(segment, window)
            indexes.add(window)
            missing_time_indexes.add(window)
            yield from epoch_findings.add(segment, window)
        yield from indexes.findings(headers.end_position, headers.next_offset)
        end = max(end, headers.next_offset)
    yield from missing_time_indexes.findings()
    yield from transaction_findings(view)
    yield from snapshot_findings(view)
    yield from unreadable
    yield from checkpoint_findings(view, end)
    yield from leftover_findings(view)
