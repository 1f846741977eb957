"""A topic along its offsets: where records, bytes, gaps, transactions and leader epochs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import LogStorageError
from pylog.locations import printable_location
from pylog.reading.html_table import html_table
from pylog.reading.log_directory import open_directory
from pylog.tables.tables import metadata_table
from pylog.text.charts import (
    ChartColumn,
    Strip,
    card,
    column_chart,
    moment,
    page,
    size,
    strip_chart,
    text,
)
from pylog.text.words import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.reading.log_view import LogView

_STEPS = 160
_MOST_DRAWN = 2_000  # transactions, epochs
_MOST_PARTITIONS = 100
_EPOCH_KINDS = ("a", "b")
_STATE_KINDS = {"committed": "good", "aborted": "none", "open": "gzip", "unknown": "other"}


class OffsetRange(NamedTuple):
    """A range of offsets, ``[start, end)``, and what it is: a state, or an epoch."""

    start: int
    end: int
    what: str


class PartitionTimeline(NamedTuple):
    """One partition along its offsets.

    Attributes
    ----------
    partition
        Its number.
    start_offset, end_offset
        What of it a broker serves, the end exclusive.
    step
        How many offsets each of the steps has.
    records, size_bytes
        By step: records, control records among them, and bytes as stored. Of a batch in several
        steps, each has its share.
    latest
        By step: the largest timestamp in ms of the batches that end there, -1 without one.
    epochs, transactions
        Leader epochs and transactions, by offsets; at most 2,000 of each.
    problem
        Why some of it could not be read, or "".
    """

    partition: int
    start_offset: int
    end_offset: int
    step: int
    records: list[int]
    size_bytes: list[int]
    latest: list[int]
    epochs: list[OffsetRange]
    transactions: list[OffsetRange]
    problem: str = ""

    @property
    def missing(self) -> list[int]:
        """By step: offsets without a record, which compaction, an abort or damage has taken."""
        found = []
        for place, records in enumerate(self.records):
            start = self.start_offset + place * self.step
            found.append(max(0, min(self.step, self.end_offset - start) - records))
        return found


class Timeline(NamedTuple):
    """What `pylog.timeline` returns."""

    path: str
    topic: str
    partitions: list[PartitionTimeline]

    def html(self) -> str:
        """Return it as one page that needs nothing beside it."""
        title = f"{text(self.topic)} in {text(self.path)}"
        cards = "".join(_card(each) for each in self.partitions[:_MOST_PARTITIONS])
        more = len(self.partitions) - _MOST_PARTITIONS
        if more > 0:
            cards += card("More", "", note=f"{counted(more, 'partition')} more are left out.")
        head = (
            f"<header><h1>{text(self.topic)} along its offsets</h1>"
            f'<p class="lead"><code>{text(self.path)}</code></p></header>'
        )
        return page(title, f'{head}<div class="grid">{cards}</div>', "pylog stats --timeline")

    def _repr_html_(self) -> str:
        rows = [
            (
                *(each.partition, each.start_offset, each.end_offset, sum(each.records)),
                *(sum(each.size_bytes), sum(each.missing), len(each.epochs)),
                *(len(each.transactions), each.problem),
            )
            for each in self.partitions
        ]
        columns = (
            *("partition", "start", "end", "records", "bytes", "missing offsets"),
            *("epochs", "transactions", "problem"),
        )
        return html_table(f"Timeline of {self.topic}", columns, rows, len(rows))


def timeline(path: str | os.PathLike[str], topic: str) -> Timeline:
    """Read where a topic's records, bytes, gaps, transactions and epochs are along its offsets.

    Only batch headers and side files are read. Memory does not depend on the size of the topic.

    Parameters
    ----------
    path
        A log directory.
    topic
        The topic's name.

    Returns
    -------
    Timeline
        A value for each partition, and a page (`Timeline.html`).

    Raises
    ------
    pylog.errors.UnknownTopicOrPartitionError
        The topic is not there.

    Examples
    --------
    >>> from pathlib import Path
    >>> found = pylog.timeline("kafka/intact", "orders")
    >>> Path("orders.html").write_text(found.html(), encoding="utf-8") > 1_000
    True
    """
    views = open_directory(path).select(topics=[topic])
    return Timeline(printable_location(path), topic, [_timeline(each) for each in views])


def _timeline(view: LogView) -> PartitionTimeline:
    number = view.partition
    try:
        start, end = view.log_start_offset, view.log_end_offset
    except LogStorageError as error:
        return PartitionTimeline(number, 0, 0, 1, [], [], [], [], [], str(error))
    step = max(1, -(-(end - start) // _STEPS))
    edges = np.arange(start, max(end, start) + step, step, dtype=np.int64)
    sums = np.zeros((2, edges.size - 1))
    latest = np.full(edges.size - 1, -1, dtype=np.int64)
    problem = ""
    try:
        for columns in _batches(view, start):
            _add(sums, latest, edges, columns)
    except LogStorageError as error:
        problem = str(error)
    ranges: list[list[OffsetRange]] = []
    for read in (_epochs, _transactions):
        try:
            ranges.append(read(view, start, end))
        except LogStorageError as error:
            ranges.append([])
            problem = problem or str(error)
    # What is rounded is rounded as a sum, so that nothing gets lost.
    whole = np.diff(np.rint(np.cumsum(sums, axis=1)), axis=1, prepend=0).astype(np.int64)
    records, size_bytes = whole.tolist()
    return PartitionTimeline(
        *(number, start, end, step, records, size_bytes, latest.tolist(), *ranges, problem)
    )


class _Batches(NamedTuple):
    bases: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    records: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]


def _batches(view: LogView, start: int) -> Iterator[_Batches]:
    before = start
    for batch in metadata_table("batches").record_batches(view):
        # Without the times: Python has none after the year 9999.
        columns = batch.select(["base_offset", "last_offset", "records"]).to_pydict()
        ends = [last + 1 for last in columns["last_offset"]]
        # A compressed wrapper of v0 or v1 says where it ends, and its records alone the rest.
        firsts = [before, *ends[:-1]]
        bases = [
            first if base is None else base
            for base, first in zip(columns["base_offset"], firsts, strict=True)
        ]
        records = [
            end - base if count is None else count
            for count, base, end in zip(columns["records"], bases, ends, strict=True)
        ]
        before = ends[-1] if ends else before
        stamps = batch.column("max_timestamp").cast("int64").fill_null(-1)
        yield _Batches(
            np.array(bases, dtype=np.int64),
            np.array(ends, dtype=np.int64),
            np.array(records, dtype=np.int64),
            batch.column("size_in_bytes").to_numpy(),
            stamps.to_numpy(zero_copy_only=False),
        )


def _add(
    sums: npt.NDArray[np.float64],
    latest: npt.NDArray[np.int64],
    edges: npt.NDArray[np.int64],
    found: _Batches,
) -> None:
    """Add batches to the steps: each step gets its share of a batch's offsets."""
    if not found.bases.size:
        return
    bounds = np.stack([found.bases, np.maximum(found.ends, found.bases)], axis=1).ravel()
    for row, values in enumerate((found.records, found.sizes)):
        after = np.cumsum(values)
        totals = np.stack([after - values, after], axis=1).ravel()
        sums[row] += np.diff(np.interp(edges, bounds, totals))
    places = np.clip((found.ends - 1 - edges[0]) // (edges[1] - edges[0]), 0, latest.size - 1)
    np.maximum.at(latest, places, found.timestamps)


def _epochs(view: LogView, start: int, end: int) -> list[OffsetRange]:
    found: list[OffsetRange] = []
    for batch in metadata_table("leader_epochs").record_batches(view):
        for row in batch.to_pylist():
            if row["epoch"] is not None and len(found) < _MOST_DRAWN:
                last = end if row["end_offset"] is None else row["end_offset"]
                first = max(start, row["start_offset"])
                if last > start:
                    found.append(OffsetRange(first, last, str(row["epoch"])))
    return found


def _transactions(view: LogView, start: int, end: int) -> list[OffsetRange]:
    found: list[OffsetRange] = []
    for batch in metadata_table("transactions").record_batches(view):
        for row in batch.select(["first_offset", "marker_offset", "state"]).to_pylist():
            first, marker = row["first_offset"], row["marker_offset"]
            if len(found) < _MOST_DRAWN and first is not None:
                last = end if marker is None else marker + 1
                found.append(OffsetRange(max(start, first), max(start, last), row["state"]))
    return found


def _card(found: PartitionTimeline) -> str:
    if not found.records:
        note = text(found.problem, 2000) if found.problem else "No offset is there."
        return card(f"Partition {found.partition}", "", note=note, wide=True)
    ranges = [
        f"{start:,} to {min(start + found.step, found.end_offset):,}"
        for start in range(found.start_offset, found.end_offset, found.step)
    ]
    tips = [
        f"offsets {each}: {counted(records, 'record')}, {size(size_bytes)}, {_until(stamp)}"
        for each, records, size_bytes, stamp in zip(
            ranges, found.records, found.size_bytes, found.latest, strict=True
        )
    ]
    ends = [f"{found.start_offset:,}", f"{found.end_offset:,}"]
    charts = ""
    for title, values, highest in (
        ("records", found.records, f"{max(found.records):,}"),
        ("bytes", found.size_bytes, size(max(found.size_bytes))),
    ):
        columns = [ChartColumn(value, 0, tip) for value, tip in zip(values, tips, strict=True)]
        charts += f'<p class="note">{title}</p>{column_chart(columns, highest, ends)}'
    step = "each offset" if found.step == 1 else f"steps of {found.step:,} offsets"
    note = f"Start offset {ends[0]}, end offset {ends[1]}, {step}."
    if found.problem:
        note += f" <b>Not all could be read:</b> {text(found.problem, 2000)}"
    return card(
        f"Partition {found.partition}", charts + _strips(found, ranges), note=note, wide=True
    )


def _until(timestamp: int) -> str:
    return "no timestamp" if timestamp < 0 else f"until {moment(timestamp)} UTC"


def _strips(found: PartitionTimeline, ranges: Sequence[str]) -> str:
    whole = max(1, found.end_offset - found.start_offset)

    def strip(each: OffsetRange, kind: str, tip: str) -> Strip:
        start, end = (offset - found.start_offset for offset in (each.start, each.end))
        tip = f"{tip}: {each.start:,} to {each.end:,}"
        return Strip(start / whole, min(end / whole, 1.0), kind, tip)

    missing = found.missing
    gaps = [
        Strip(
            place * found.step / whole,
            min((place + missed / found.step) * found.step / whole, 1.0),
            "other",
            f"offsets {each}: {counted(missed, 'offset')} without a record",
        )
        for place, (each, missed) in enumerate(zip(ranges, missing, strict=True))
        if missed
    ]
    transactions = [
        strip(each, _STATE_KINDS.get(each.what, "other"), each.what) for each in found.transactions
    ]
    epochs = [
        strip(each, _EPOCH_KINDS[place % 2], f"epoch {each.what}")
        for place, each in enumerate(found.epochs)
    ]
    return strip_chart(
        [
            ("missing", gaps, f"{sum(missing):,}"),
            ("transactions", transactions, f"{len(transactions):,}"),
            ("leader epochs", epochs, f"{len(epochs):,}"),
        ]
    )
