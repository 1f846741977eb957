"""Table ``findings``: what `pylog.doctor` finds; its columns stand beside `Finding.row`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.checks.log_directory import check_log_directories, findings_between
from pylog.checks.partition import check_partition
from pylog.checks.report import FINDINGS
from pylog.columnar.rows import TableText
from pylog.columnar.rows import table_of_rows as arrow_table
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.tables.metadata_table import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.checks.report import Finding
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

_TEXT = TableText.of_partitions(FINDINGS)


def _rows(
    view: LogView, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Iterator[tuple[object, ...]]:
    """Yield the findings about one partition: its ``.log`` files, indexes, then all else."""
    for finding in check_partition(view, max_decompressed_bytes=max_decompressed_bytes).findings:
        yield finding.row()


def _directory_batches(directory: LogDirectory) -> Iterator[pa.RecordBatch]:
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
        yield from arrow_table(rows, _TEXT.schema).to_batches()


FINDINGS_TABLE = table_of_rows(
    "findings", _TEXT, _rows, _directory_batches, max_decompressed_bytes=""
)
