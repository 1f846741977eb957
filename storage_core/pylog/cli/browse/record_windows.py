"""Records of one partition as rows, a window at a time, forwards and backwards.

A window covers a range of offsets without holes: where the log has no record, a row says so, and
another kind of row stands for bytes that are damaged. A row has the beginning of key and value, so
that a window takes little memory, however large the records are.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any, NamedTuple

import pylog
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pylog.results import DamagedRange, LogDirectory, Scan

PREVIEW_BYTES = 512
"""Of a key and of a value, what a row keeps."""
WINDOW_RECORDS = 500
_WINDOW_BYTES = 16 << 20
"""Of records that have been read for a window; the rest is the next one's."""
_COLUMNS = ("offset", "timestamp", "key", "value")


class Row(NamedTuple):
    """A record or, with a ``note``, a range of offsets that has none."""

    offset: int
    end_offset: int  # exclusive
    timestamp: int = -1
    key: str | None = None  # its beginning, decoded with surrogateescape
    value: str | None = None
    note: str = ""
    is_damage: bool = False  # whether bytes are damaged here

    @property
    def is_record(self) -> bool:
        """Whether the row is a record, and not a note about damage or a gap."""
        return not self.note


class RowWindow(NamedTuple):
    """Rows that cover ``[start_offset, end_offset)``."""

    start_offset: int
    end_offset: int
    rows: list[Row]


class PartitionRecords:
    """Reads the records of one partition that a choice leaves. Any number of threads may use it.

    Attributes
    ----------
    start_offset, end_offset
        What can be shown, the end exclusive; `refresh` finds out.
    """

    def __init__(
        self,
        directory: LogDirectory,
        partition: pylog.TopicPartition,
        choice: dict[str, Any],
        read_options: dict[str, Any],
    ) -> None:
        self.partition = partition
        self.path: str = directory[partition].directory.path
        self.start_offset = self.end_offset = 0
        self._directory = directory
        self._choice = choice  # start, end and isolation, as of `pylog.scan`
        self._read_options = read_options

    def refresh(self) -> None:
        """Look where the log starts and ends now."""
        # A scan that passes over damage lists the directory anew.
        tasks = self._scan(columns=("offset",)).plan()
        self.start_offset = min((each.start_offset for each in tasks), default=0)
        self.end_offset = max((each.end_offset for each in tasks), default=self.start_offset)

    def forward(self, offset: int, count: int = WINDOW_RECORDS) -> RowWindow:
        """Return the window of ``count`` records from ``offset`` on."""
        offset = max(offset, self.start_offset)
        if offset >= self.end_offset:
            return RowWindow(offset, offset, [])
        scan = self._scan(start=offset, end=self.end_offset, limit=count, columns=_COLUMNS)
        rows: list[Row] = []
        read_bytes = 0
        end_offset = self.end_offset
        for batch in scan.to_batches():
            rows += record_rows(batch)
            read_bytes += batch.nbytes
            if len(rows) >= count or read_bytes >= _WINDOW_BYTES:
                end_offset = rows[-1].end_offset
                break
        return _window(offset, end_offset, rows, self._damage(scan, offset, end_offset))

    def backward(self, offset: int, count: int = WINDOW_RECORDS) -> RowWindow:
        """Return the window of the last ``count`` records before ``offset``."""
        offset = min(offset, self.end_offset)
        if offset <= self.start_offset:
            return RowWindow(offset, offset, [])
        scan = self._scan(start=self.start_offset, end=offset, columns=_COLUMNS).last(count)
        rows = [row for batch in scan.to_batches() for row in record_rows(batch)]
        start_offset = rows[0].offset if len(rows) >= count else self.start_offset
        return _window(start_offset, offset, rows, self._damage(scan, start_offset, offset))

    def around(self, offset: int) -> RowWindow:
        """Return a window with rows before and after ``offset``."""
        offset = min(max(offset, self.start_offset), self.end_offset)
        before, after = self.backward(offset), self.forward(offset)
        return joined(before, after)

    def offset_of_time(self, milliseconds: int) -> int:
        """Return the first offset whose record is at this time or later; the end without one."""
        start = pylog.Timestamp(milliseconds, if_missing="latest")
        tasks = self._scan(start=start, end=self.end_offset, columns=("offset",)).plan()
        found = min((each.start_offset for each in tasks), default=self.end_offset)
        return max(found, self.start_offset)

    def record(self, offset: int) -> pa.RecordBatch | None:
        """Return a record with the columns of a JSON line; None if it is not there or damaged."""
        columns = pylog.jobs.LineFormat.json().columns
        scan = self._scan(start=offset, end=offset + 1, columns=columns)
        return next((batch for batch in scan.to_batches() if batch.num_rows), None)

    def _scan(self, **arguments: Any) -> Scan:  # noqa: ANN401 - of pylog.scan
        topic, partition = self.partition
        return pylog.scan(
            self._directory,
            **{
                **self._choice,
                **self._read_options,
                "assign": {topic: [partition]},
                # A row says what is damaged, and records that retention removes meanwhile are gone.
                "mode": "DROPMALFORMED",
                "fail_on_data_loss": False,
                "timestamp_unit": "ms",
                **arguments,
            },
        )

    def _damage(self, scan: Scan, start_offset: int, end_offset: int) -> Iterator[Row]:
        """Yield a row for each damaged range that begins within these offsets, or reaches in."""
        for each in scan.damage:
            end = end_offset if each.end_offset is None else each.end_offset
            end = max(end, each.next_offset)  # where it is below, nobody knows which offsets
            is_last = end_offset == self.end_offset
            if each.next_offset < end_offset or (is_last and each.next_offset == end_offset):
                first = max(each.next_offset, start_offset)
                yield Row(
                    first, min(max(end, first), end_offset), note=_about(each), is_damage=True
                )


def record_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of records."""
    offsets = batch.column("offset").to_pylist()
    timestamps = batch.column("timestamp").cast("int64").to_pylist()
    keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
    ends = (offset + 1 for offset in offsets)
    yield from map(Row, offsets, ends, timestamps, map(_beginning, keys), map(_beginning, values))


def joined(before: RowWindow, after: RowWindow) -> RowWindow:
    """Return two windows that meet as one; a range without records that they share as one row."""
    first, second = before.rows, after.rows
    if first and second and first[-1].note and _continues(first[-1], second[0]):
        whole = second[0]._replace(offset=first[-1].offset)
        if not whole.is_damage:
            whole = _gap(whole.offset, whole.end_offset)
        first, second = first[:-1], [whole, *second[1:]]
    return RowWindow(before.start_offset, after.end_offset, [*first, *second])


def _continues(row: Row, following: Row) -> bool:
    return (
        bool(following.note)
        and row.end_offset == following.offset
        and row.is_damage == following.is_damage
        and (row.note == following.note or not row.is_damage)
    )


def _beginning(content: bytes | None) -> str | None:
    """Return the beginning as text, without a character that is cut."""
    if content is None:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    return decoder.decode(content[:PREVIEW_BYTES], final=len(content) <= PREVIEW_BYTES)


def _about(damage: DamagedRange) -> str:
    if damage.is_unreadable:
        return f"cannot be read: {damage.reason}"
    size = format_bytes(damage.end_position - damage.position)
    return f"damaged, {size} from byte {damage.position} on: {damage.reason}"


def _gap(offset: int, end_offset: int) -> Row:
    many = counted(end_offset - offset, "offset")
    return Row(offset, end_offset, note=f"{many} without a record")


def _window(
    start_offset: int, end_offset: int, records: list[Row], damage: Iterable[Row]
) -> RowWindow:
    """Return the rows in order, with one for each range in which there is none."""
    rows: list[Row] = []
    at = start_offset
    for row in sorted([*records, *damage], key=lambda row: (row.offset, row.is_record)):
        if row.offset > at:
            rows.append(_gap(at, row.offset))
        rows.append(row)
        at = max(at, row.end_offset)
    if at < end_offset:
        rows.append(_gap(at, end_offset))
    return RowWindow(start_offset, end_offset, rows)
