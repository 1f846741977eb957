"""``pylog cat``: the records of a log directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

import pylog
from pylog.cli import exit_status, progress
from pylog.cli.cat_options import (
    EndOffset,
    EndTimestamp,
    Format,
    FormatOption,
    IgnoreIndexes,
    Isolation,
    IsolationOption,
    MaxDecompressedBytes,
    ModeOption,
    Partitions,
    Paths,
    StartOffset,
    StartTimestamp,
    Topics,
)
from pylog.cli.compile_notice import announce_compilation
from pylog.cli.partition_choice import choose_partitions
from pylog.cli.record_json import JSON_COLUMNS, json_lines
from pylog.cli.record_text import TEXT_COLUMNS, text_lines
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import open_directory
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from pylog.positions import OffsetSpec

ROWS_AT_ONCE = 8192
"""Records that are formatted before they are written: some megabytes of text."""


_FORMATS: dict[Format, tuple[tuple[str, ...], Callable[[pa.RecordBatch], bytes]]] = {
    Format.JSONL: (JSON_COLUMNS, json_lines),
    Format.TEXT: (TEXT_COLUMNS, text_lines),
}


def cat(
    paths: Paths,
    topics: Topics = None,
    partitions: Partitions = None,
    isolation: IsolationOption = Isolation.READ_UNCOMMITTED,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    start_timestamp: StartTimestamp = None,
    end_timestamp: EndTimestamp = None,
    mode: ModeOption = ReadMode.FAILFAST,
    output_format: FormatOption = Format.JSONL,
    ignore_indexes: IgnoreIndexes = False,
    max_decompressed_bytes: MaxDecompressedBytes = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> int:
    r"""Print records, as JSON lines or as text.

    Partition by partition, in offset order: what Kafka's own consumer returns. Control records
    and records below the log start offset are not printed. Timestamps given are look-ups of
    offsets, as in Kafka, and not filters: where timestamps are out of order, the range may hold
    earlier and later ones.

    jsonl has the keys topic, partition, offset, timestamp (ms), timestampType (-1 none, 0
    CreateTime, 1 LogAppendTime), leaderEpoch (or null), key and value (base64 or null), headers
    ([[name, base64 or null], ...]).

    text reads keys and values as UTF-8. A null is \N, an empty one is empty; bytes that are not
    UTF-8 and control characters are escaped (\t \n \r \x1b \u0085), a backslash is doubled.

    Exit status: 0 sound, 1 damage was met, 2 wrong usage or a path that cannot be read.
    """
    start = _position("start", start_offset, start_timestamp, "earliest")
    end = _position("end", end_offset, end_timestamp, "latest")
    columns, lines_of = _FORMATS[output_format]
    has_bar = progress.is_wanted()
    if has_bar:
        columns = tuple(dict.fromkeys([*columns, *progress.PROGRESS_COLUMNS]))
    directory = open_directory(*paths)
    chosen = choose_partitions(directory, topics or (), partitions or ())
    scan = pylog.scan(
        directory,
        assign=chosen,
        start=start,
        end=end,
        isolation=isolation.value,
        columns=columns,
        mode=ReadMode.DROPMALFORMED if mode.skips_damage else ReadMode.FAILFAST,
        timestamp_unit="ms",
        use_indexes=not ignore_indexes,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    announce_compilation()
    planned = progress.PlannedBytes(scan.plan())
    output = sys.stdout.buffer
    with progress.ProgressBar("reading", planned.total) as bar:
        for batch in scan.to_batches():
            for piece in _pieces(batch):
                output.write(lines_of(piece))
            if has_bar:
                bar.show(planned.before_end_of(batch))
    # Each has been named on stderr when it was met.
    return exit_status.FINDINGS if scan.damage.ranges else exit_status.SOUND


def _position(which: str, offset: int | None, timestamp: int | None, default: str) -> OffsetSpec:
    if offset is not None and timestamp is not None:
        msg = f"give either --{which}-offset or --{which}-timestamp, not both"
        raise typer.BadParameter(msg)
    if timestamp is not None:
        return pylog.Timestamp(timestamp, if_missing="latest")
    return default if offset is None else offset


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(start, ROWS_AT_ONCE)
