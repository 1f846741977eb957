"""`search`: the records of some logs that match, while they are found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.model import EARLIEST, LATEST, IsolationLevel
from pylog.reading.log_directory import choose_partitions, opened
from pylog.reading.record_filter import RecordFilter
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.text.names import names_nearest_keyword

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Literal

    import pyarrow as pa

    from pylog.admin import key_partitions
    from pylog.admin.key_partitions import KeyPartitions
    from pylog.model import IsolationName, OffsetSpecs, Timestamp
    from pylog.reading import coordinators, field_filter, scan
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import Bytes, Patterns
    from pylog.reading.scan import AbsentOffsets
    from pylog.reading.value_format import ValueFormat

    Time = int | Timestamp | dt.datetime
else:
    coordinators = LazyModule("pylog.reading.coordinators")
    field_filter = LazyModule("pylog.reading.field_filter")
    key_partitions = LazyModule("pylog.admin.key_partitions")
    scan = LazyModule("pylog.reading.scan")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSummary:
    """The matches of a search so far, and how much was scanned.

    Attributes
    ----------
    partitions
        How many are searched.
    matches
        Records that were found, and given to the caller.
    scanned_bytes, total_bytes
        Bytes of ``.log`` files: looked through, and planned.
    scanned_batches, scanned_records
        Record batches that were looked through, and the records that they count, those outside of
        the range included.
    uncounted_batches
        Of these batches, compressed ones of v0 and v1, which do not say how many records they have.
    unreadable
        Damaged ranges, which were left out: what they held was not searched.
    is_complete
        Whether everything that was planned has been looked through; False while the search goes on,
        or once it has stopped at its limit.
    key_partitions
        With ``partitioner``, the only partitions that are searched; not in `document`.
    absent
        Once it is complete: the partitions of which no segment has an offset of the range.
    undecodable
        How many keys and values could not be decoded, and so were left out, by topic and column.
    """

    partitions: int
    matches: int
    scanned_bytes: int
    total_bytes: int
    scanned_batches: int
    scanned_records: int
    uncounted_batches: int
    unreadable: tuple[DamagedRange, ...]
    is_complete: bool
    key_partitions: tuple[KeyPartitions, ...] = ()
    absent: tuple[AbsentOffsets, ...] = ()
    undecodable: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """Return it with the names and values that the command prints as JSON."""
        return {
            "partitions": self.partitions,
            "matches": self.matches,
            "scannedBytes": self.scanned_bytes,
            "totalBytes": self.total_bytes,
            "scannedBatches": self.scanned_batches,
            "scannedRecords": self.scanned_records,
            "uncountedBatches": self.uncounted_batches,
            "isComplete": self.is_complete,
            "unreadable": [
                {
                    "file": str(each.path),
                    "position": each.position,
                    "endPosition": each.end_position,
                    "nextOffset": each.next_offset,
                    "endOffset": each.end_offset,
                    "reason": each.reason,
                }
                for each in self.unreadable
            ],
            "absent": [
                {**each.topic_partition._asdict(), "startOffset": each.start, "endOffset": each.end}
                for each in self.absent
            ],
            "undecodable": [
                {"topic": topic, "column": column, "count": count}
                for (topic, column), count in sorted(self.undecodable.items())
            ],
        }


class Search:
    """The matches of a search, to be iterated once, as record batches in the order of a scan.

    `search` makes it. `summary` may be asked for at any time. One thread.

    Attributes
    ----------
    schema
        The Arrow schema of the matches.
    """

    def __init__(self, planned: scan.Scan, only: Iterable[KeyPartitions] = ()) -> None:
        self.schema: pa.Schema = planned.schema
        self._scan = planned
        self._key_partitions = tuple(only)
        self._matches = 0
        self._is_complete = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._scan.to_batches():
            self._matches += batch.num_rows
            yield batch
        self._is_complete = self._matches != self._scan.limit

    @property
    def without_schema(self) -> Mapping[str, str]:
        """See `Scan.without_schema`: topics without fields that ``where`` could be about."""
        return self._scan.without_schema

    @property
    def summary(self) -> SearchSummary:
        """The counts of the search so far: partitions, matches, bytes."""
        scanned = self._scan.scanned
        return SearchSummary(
            partitions=len(self._scan.partitions),
            matches=self._matches,
            scanned_bytes=scanned.size_bytes,
            total_bytes=sum(task.size_bytes for task in self._scan.plan()),
            scanned_batches=scanned.batches,
            scanned_records=scanned.records,
            uncounted_batches=scanned.uncounted_batches,
            unreadable=tuple(self._scan.damage),
            is_complete=self._is_complete,
            key_partitions=self._key_partitions,
            absent=tuple(self._scan.absent_offsets()) if self._is_complete else (),
            undecodable=dict(self._scan.undecodable.counts),
        )


@names_nearest_keyword
def search(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str] | LogDirectory,
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
    pattern: str | None = None,
    key: Bytes | Iterable[Bytes] | None = None,
    key_contains: Bytes | Iterable[Bytes] = (),
    key_regex: Patterns | Iterable[Patterns] = (),
    partitioner: str | None = None,
    value_contains: Bytes | Iterable[Bytes] = (),
    value_regex: Patterns | Iterable[Patterns] = (),
    header: str | Iterable[str] = (),
    json_path: str | Iterable[str] = (),
    tombstones: bool = False,
    where: str | None = None,
    ignore_case: bool = False,
    invert: bool = False,
    min_timestamp: Time | None = None,
    max_timestamp: Time | None = None,
    trust_batch_timestamps: bool = False,
    start: OffsetSpecs = EARLIEST,
    end: OffsetSpecs = LATEST,
    isolation: IsolationName | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    columns: str | Iterable[str] | None = None,
    limit: int | None = None,
    timestamp_unit: Literal["us", "ms"] = "us",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    use_indexes: bool = True,
    threads: int | None = None,
    leave_page_cache: bool = False,
    progress: Callable[[int, int], None] | None = None,
    value_format: str | ValueFormat | None = None,
    key_format: str | ValueFormat | None = None,
) -> Search:
    """Return the records that pass all of the given tests, as they are found.

    The bytes of each batch are looked through first, and only batches that may hold a match are
    decoded; all checksums are verified. Damage is passed over and listed in `Search.summary`, and
    so a match never stands in it.

    Parameters
    ----------
    *paths
        Log directories, topic-partition directories, or ``.log`` files in them; or one
        `LogDirectory`.
    topics, partitions, pattern
        As for `pylog.jobs.choose_partitions`.
    key
        The key is exactly this, or one of these; text stands for its UTF-8. The partitions where
        Kafka's default partitioner puts them are searched first.
    partitioner
        Search only the partitions where this partitioner puts the keys, one of
        `pylog.KEY_PARTITIONER_NAMES`. Records from before partitions were added may be elsewhere.
    key_contains, key_regex, value_contains, value_regex, header, json_path, tombstones, ignore_case
        As for `RecordFilter.matching`. They test bytes, also of keys and values that are decoded.
        See the notes on the time of a regular expression.
    where
        A condition on fields of decoded keys and values, as SQL has it:
        ``"value.user.id = 7 AND value.status IN ('sent', 'returned')"``. Operators are
        ``= != <> < <= > >=``, ``IS [NOT] NULL``, ``[NOT] IN (…)`` and
        ``[NOT] BETWEEN … AND …``, combined by ``AND``, ``OR``, ``NOT`` and parentheses. Text, dates
        and times stand in single quotes, odd names in double ones. Null passes ``IS NULL`` alone.
    invert
        Only records that do not pass all of the tests of key, value, headers and fields. The bounds
        of timestamps stay what they are.
    min_timestamp, max_timestamp
        The record's timestamp is between these, both inclusive. Records without one do not match.
    trust_batch_timestamps
        Do not read batches whose header says that all records are before ``min_timestamp``: faster,
        and right where a broker has written them. See `RecordFilter.trusts_batch_timestamps`.
    start, end, isolation, timestamp_unit, max_decompressed_bytes, use_indexes, leave_page_cache
        As for `pylog.scan`.
    columns
        As for `pylog.scan`; all, also headers, by default.
    limit
        The most matches; nothing after the last of them is read.
    threads
        As for `pylog.scan`.
    progress
        Called with the bytes that have been looked through and those that are to be.
    value_format, key_format
        As for `pylog.scan`. What cannot be decoded is left out, logged, and counted in
        `Search.summary`; of records that do not match, only what ``where`` is about is decoded.

    Raises
    ------
    InvalidSchemaError
        A schema is wrong, or it is not clear which one columns are to have.
    LogDirectoryError, UnknownTopicOrPartitionError
        The path holds no log, or not what was asked for.
    ValueError
        An argument makes no sense, ``where`` names a field that there is not, or compares it with a
        constant of another type, or no test was given.

    Notes
    -----
    As everywhere in Python, nothing limits the time of a regular expression: ``(a+)+$`` takes twice
    as long for each further ``a`` of a value. With ``threads=1`` it is looked for in the caller's
    thread, where Ctrl-C or a signal handler that raises ends it, as `pylog search` does after a
    minute. With more, it may be in a thread that nothing can stop, and no other one goes on
    meanwhile: let a pattern that somebody else has written run in one thread, or in a process of
    its own.

    Examples
    --------
    >>> found = pylog.search("kafka/intact", json_path=["$.status=returned", "$.currency=EUR"])
    >>> for batch in found:
    ...     print(batch.select(["topic", "partition", "offset"]).to_pylist())
    [{'topic': 'invoices-eu', 'partition': 0, 'offset': 44}]
    [{'topic': 'invoices-eu', 'partition': 1, 'offset': 51}]
    >>> found.summary.unreadable
    ()
    """
    tests = RecordFilter.matching(
        key=key,
        key_contains=key_contains,
        key_regex=key_regex,
        value_contains=value_contains,
        value_regex=value_regex,
        header=header,
        json_path=json_path,
        tombstones=tombstones,
        ignore_case=ignore_case,
        invert=invert and where is None,
    )
    of_bytes = _of_times(min_timestamp, max_timestamp, trusts_batches=trust_batch_timestamps)
    of_bytes = of_bytes & tests if where is None or not invert else of_bytes
    _check(of_bytes, where)
    directory = opened(*paths, takes_segment_files=True)
    assign = choose_partitions(directory, topics, partitions, pattern=pattern)
    only = _only_partitions(directory, assign, of_bytes.keys, partitions, partitioner)
    if only:
        assign = {each.topic: list(each.partitions) for each in only}
    planned = scan.scan(
        directory,
        assign=assign,
        start=start,
        end=end,
        isolation=isolation,
        fail_on_data_loss=False,
        columns=columns,
        include_headers=True,
        include_batch_metadata=True,
        mode="DROPMALFORMED",
        timestamp_unit=timestamp_unit,
        max_decompressed_bytes=max_decompressed_bytes,
        where=of_bytes,
        limit=limit if where is None else None,
        use_indexes=use_indexes,
        threads=threads,
        leave_page_cache=leave_page_cache,
        value_format=value_format,
        key_format=key_format,
    )
    if of_bytes.keys and not only:
        _put_first(planned.partitions, directory, of_bytes.keys)
    planned = _narrowed(planned, where, tests if invert else None, limit)
    planned.scanned.report_to(progress, planned.plan)
    return Search(planned, only)


def _of_times(
    min_timestamp: Time | None, max_timestamp: Time | None, *, trusts_batches: bool
) -> RecordFilter:
    if max_timestamp is not None and min_timestamp is None:
        min_timestamp = 0  # a record without a timestamp, which has -1, is not early but unknown
    return RecordFilter(
        min_timestamp=min_timestamp,  # type: ignore[arg-type]  # becomes milliseconds
        max_timestamp=max_timestamp,  # type: ignore[arg-type]
        trusts_batch_timestamps=trusts_batches,
    )


def _narrowed(
    planned: scan.Scan,
    condition: str | None,
    inverted_with: RecordFilter | None,
    limit: int | None,
) -> scan.Scan:
    """Return the part of a scan that passes a condition on fields, or its inverse."""
    if condition is None:
        return planned
    topics = [view.topic for view in planned.partitions]
    types = {} if planned.typed is None else planned.typed.types_of(topics)
    where = field_filter.FieldFilter.of_topics(condition, types, inverted_with=inverted_with)
    return planned.narrowed(where=where, limit=limit)


def _only_partitions(
    directory: LogDirectory,
    chosen: dict[str, list[int]],
    keys: frozenset[bytes] | None,
    partitions: Sequence[int],
    partitioner: str | None,
) -> list[KeyPartitions]:
    if partitioner is None:
        return []
    if not keys or partitions:
        msg = (
            "partitioner says which partitions a key is in: give a key, and neither partitions "
            "nor invert"
        )
        raise ValueError(msg)
    return key_partitions.partitions_of_keys(directory, chosen, keys, partitioner)


def _put_first(views: list[LogView], directory: LogDirectory, keys: frozenset[bytes]) -> None:
    """Put the partitions first where the default partitioner puts the keys, as far as is known."""
    several = {topic for topic, count in Counter(view.topic for view in views).items() if count > 1}
    image = coordinators.cluster_image(directory, []) if several else None
    of = key_partitions.KeyPartitions.of
    places = [of(directory, topic, keys, image=image) for topic in several]
    first = {(each.topic, number) for each in places if each for number in each.partitions}
    views.sort(key=lambda view: view.topic_partition not in first)


def _check(of_bytes: RecordFilter, condition: str | None) -> None:
    """Raise `ValueError` for a search for nothing."""
    if condition is None and not of_bytes.needs_records:
        msg = (
            "nothing to search for was given: key, key_contains, key_regex, value_contains, "
            "value_regex, header, json_path, tombstones, where, min_timestamp or max_timestamp; "
            "pylog.scan reads all records"
        )
        raise ValueError(msg)
