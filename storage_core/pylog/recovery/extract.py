"""`extract`: a part of some logs becomes a log directory of its own, at the same offsets.

Whole batches are copied byte for byte, and appended as a follower appends what it fetches: so
indexes, leader epochs, producer snapshots and checkpoints are those of a replica that has this part
alone. The directory is made beside its place and moved there
(`pylog.writing.new_log_directory`); the source is only read.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.config.log_config import COMPACT
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.files.durable_io import DurableIO
from pylog.files.free_space import NeededSpace, ensure_space, log_space
from pylog.locations import printable_location
from pylog.model import EARLIEST, LATEST, check_specs, spec_for
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.log_directory import LogDirectory, choose_partitions, opened
from pylog.reading.offset_resolution import resolve_end, resolve_start
from pylog.recovery.cut_transactions import CutTransaction, find_cut, open_at_end_of, whole_end
from pylog.recovery.omitted_records import OmittedRecords
from pylog.recovery.part_options import TRANSACTIONS
from pylog.recovery.partition_copy import RangeCopy, end_transaction
from pylog.text.names import names_nearest_keyword
from pylog.writing.new_log_directory import (
    copy_identity,
    ensure_apart,
    ensure_new,
    new_log_directory,
)
from pylog.writing.owned_directory import own_log_directory
from pylog.writing.topic_configs import cluster_topic_configs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.config import LogConfig
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import OffsetSpecs, TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter

"""Of each partition: what snapshots and indexes may take."""


class ExtractedPartition(NamedTuple):
    """A partition of the copy.

    Attributes
    ----------
    source
        The directory that is copied.
    start_offset, end_offset
        Where the copy starts and ends, exclusive.
    batches, rewritten_batches
        How many it has, and how many of them were written anew.
    size_bytes
        Of its batches.
    left_out_records, left_out_of_transactions
        Records of the range that are left out by their content or producer, and how many of them
        are in transactions; markers stay.
    aborted_at
        Offsets of ABORT markers that were appended, the only offsets that the source has not.
    missing
        Offsets ``[start, end)`` of the range that the source has lost: files are gone, and there is
        no sign of compaction, or something else is left of a segment. Where the range reaches the
        end of the log, also offsets behind its last batch that checkpoints, snapshots or indexes
        tell of; where it begins where a compacted log does, those before its first segment.
    """

    topic: str
    partition: int
    source: str
    start_offset: int
    end_offset: int
    batches: int = 0
    rewritten_batches: int = 0
    size_bytes: int = 0
    left_out_records: int = 0
    left_out_of_transactions: int = 0
    aborted_at: tuple[int, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """What `pylog.jobs.extract` returns.

    Attributes
    ----------
    to
        The log directory that was made.
    is_written
        Whether it was made, and not only planned.
    partitions
        What it has.
    cut_transactions
        Transactions that the end of the range cuts. Their markers are not in the copy: they stay
        open there, unless they were aborted.
    """

    to: str
    is_written: bool
    partitions: list[ExtractedPartition]
    cut_transactions: list[CutTransaction] = field(default_factory=list)


@names_nearest_keyword
def extract(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str] | LogDirectory,
    to: str | os.PathLike[str],
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
    pattern: str | None = None,
    start: OffsetSpecs = EARLIEST,
    end: OffsetSpecs = LATEST,
    exact: bool = False,
    transactions: str = "name",
    where: RecordFilter | None = None,
    exclude: RecordFilter | None = None,
    exclude_producers: Iterable[int] = (),
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Copy a part of some logs into a new log directory, at the same offsets.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories; or one `LogDirectory`. They are not
        changed, and no broker should be working on them.
    to
        The log directory to be made: it does not exist, or is empty. What an interrupted call has
        left there is removed first.
    topics, partitions, pattern
        As for `pylog.jobs.choose_partitions`.
    start, end
        First offset of the copy, and the one before which it ends, as for `pylog.scan`.
    exact
        Whether batches that hold offsets on both sides of an end of the range are written anew,
        with the records of the range alone. By default they are copied whole: the log starts at
        ``start`` all the same, and ends after the last batch.
    transactions
        What is done with transactions that the end cuts. ``name``: they stay open in the copy.
        ``include``: the copy ends later, after the last of their markers. ``abort``: an ABORT
        marker of each is appended, at an offset that the source has for something else.
    where, exclude
        Keep only records that pass the one filter and do not pass the other; None for all. Offsets
        stay, also of what is left out, and batches that lose records are written anew, as those at
        the ends of the range then are.
    exclude_producers
        Ids of producers of which nothing is kept but markers.
    dry_run
        Whether nothing is written. The range is read all the same.
    progress
        Called with the bytes that were copied and all of them.

    Returns
    -------
    Extraction
        What was copied, and which transactions are cut.

    Raises
    ------
    LogDirectoryError
        ``to`` is not empty, lies in the source, or has not enough space; or the source cannot be
        read.
    OffsetOutOfRangeError, UnknownTopicOrPartitionError
        The source does not have what was asked for.
    CorruptRecordError, InvalidRecordError
        The range is damaged; nothing was made.
    KafkaStorageError
        The copy could not be written; nothing is left of it.
    ValueError
        The arguments make no sense.

    Examples
    --------
    >>> done = pylog.jobs.extract("kafka/intact", to="part", topics=["orders"], partitions=[0],
    ...                           start=10, end=20, exact=True)
    >>> [(each.start_offset, each.end_offset) for each in done.partitions]
    [(10, 20)]
    """
    if transactions not in TRANSACTIONS:
        msg = f"transactions is {transactions!r}, expected one of {', '.join(TRANSACTIONS)}"
        raise ValueError(msg)
    place = ensure_new(to)
    for path in paths:
        if isinstance(path, LogDirectory):
            for each in path.directories:
                ensure_apart(place, each.log_directory)
        else:
            ensure_apart(place, os.fspath(path))
    directory = opened(*paths)
    assign = choose_partitions(directory, topics, partitions, pattern=pattern)
    if CLUSTER_METADATA.topic in assign:
        msg = "the log of the cluster's metadata goes with its node: pylog first-aid copies it"
        raise ValueError(msg)
    views = directory.select(assign=assign)
    for specs in (start, end):
        check_specs(specs, [each.topic_partition for each in views])
    omission = None
    producers = frozenset(exclude_producers)
    if where is not None or exclude is not None or producers:
        omission = partial(OmittedRecords, where=where, exclude=exclude, producers=producers)
    configs = _known_configs(views)
    copies = [
        _planned(
            *(each, start, end, transactions, configs.get(each.topic)),
            is_exact=exact,
            omission=omission,
        )
        for each in views
    ]
    report = _Progress(sum(each.size_bytes for each in copies), progress)
    if dry_run:
        return _plan(place, copies, report)
    return _write(place, copies, transactions, configs, report)


class _Progress:
    """Adds up what was done, and says it."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self.total = total
        self._done = 0
        self._progress = progress

    def __call__(self, size_bytes: int) -> None:
        self._done += size_bytes
        if self._progress is not None:
            self._progress(self._done, self.total)


def _known_configs(views: Sequence[LogView]) -> dict[str, LogConfig]:
    """Return how the topics are configured that the cluster's metadata beside them know."""
    topics = {each.topic for each in views}
    return {
        topic: config
        for each in dict.fromkeys(each.directory.log_directory for each in views)
        for topic, config in cluster_topic_configs(each).items()
        if topic in topics
    }


def _planned(  # noqa: PLR0913 - what a user may say of a copy
    view: LogView,
    start: OffsetSpecs,
    end: OffsetSpecs,
    transactions: str,
    config: LogConfig | None,
    *,
    is_exact: bool,
    omission: Callable[[TopicPartition], OmittedRecords] | None,
) -> RangeCopy:
    place = view.topic_partition
    latest = view.log_end_offset
    start_offset = resolve_start(spec_for(start, place, EARLIEST), view, latest)
    end_spec = spec_for(end, place, LATEST)
    end_offset = resolve_end(end_spec, view, latest)
    is_offset = isinstance(end_spec, int) and end_spec >= 0
    if start_offset > end_offset:
        msg = f"the range of {place} starts at offset {start_offset} and ends at {end_offset}"
        raise ValueError(msg)
    if transactions == "include":
        end_offset = whole_end(view, start_offset, end_offset)
    return RangeCopy(
        *(view, start_offset, end_offset),
        is_exact=is_exact or omission is not None,
        omission=None if omission is None else omission(place),
        is_compacted=None if config is None else COMPACT in config.cleanup_policy,
        goes_to_end=end_offset == latest and not is_offset,
    )


def _plan(place: str, copies: list[RangeCopy], report: _Progress) -> Extraction:
    with _advice_on_damage():
        for each in copies:
            each.count(report)
    planned = [_partition_of(each, each.start_offset, each.end_offset) for each in copies]
    cut = [
        one
        for each in copies
        for one in find_cut(
            each.view,
            open_at_end_of(each.view, each.start_offset, each.end_offset),
            each.end_offset,
        )
    ]
    return Extraction(place, is_written=False, partitions=planned, cut_transactions=cut)


def _write(
    place: str,
    copies: list[RangeCopy],
    transactions: str,
    configs: dict[str, LogConfig],
    report: _Progress,
) -> Extraction:
    ensure_space(NeededSpace(place, log_space(each.size_bytes)) for each in copies)
    topics = {each.view.topic for each in copies}
    sources = list(dict.fromkeys(each.view.directory.log_directory for each in copies))
    partitions: list[ExtractedPartition] = []
    cut: list[CutTransaction] = []
    with _advice_on_damage(), new_log_directory(place) as unfinished:
        for each in sources:
            copy_identity(each, unfinished, topics)
        for copy in copies:
            copy.prepare(DurableIO(), unfinished)
        with own_log_directory(
            unfinished, topic_configs=configs, high_watermark="log-end"
        ) as manager:
            for copy in copies:
                log = manager.get_log(copy.view.topic_partition)
                copy.write(log, report)
                partitions.append(_finished(copy, log, transactions, cut))
    return Extraction(place, is_written=True, partitions=partitions, cut_transactions=cut)


@contextmanager
def _advice_on_damage() -> Iterator[None]:
    try:
        yield
    except (CorruptRecordError, InvalidRecordError) as error:
        error.add_note("save what is intact with pylog doctor --repair-to, and extract from that")
        raise


def _finished(
    copy: RangeCopy, log: UnifiedLog, transactions: str, cut: list[CutTransaction]
) -> ExtractedPartition:
    view, end_offset = copy.view, log.log_end_offset
    still_open = log.producer_state.open_transactions
    since = {each.producer_id: each.first_offset for each in still_open}
    cut += find_cut(view, since, end_offset)
    aborted = [end_transaction(log, each) for each in still_open if transactions == "abort"]
    return _partition_of(copy, log.log_start_offset, log.log_end_offset, tuple(aborted))


def _partition_of(
    copy: RangeCopy, start_offset: int, end_offset: int, aborted_at: tuple[int, ...] = ()
) -> ExtractedPartition:
    counts, view = copy.counts, copy.view
    return ExtractedPartition(
        *view.topic_partition,
        printable_location(view.directory.path),
        start_offset,
        end_offset,
        counts.batches,
        counts.rewritten_batches,
        counts.size_bytes if counts.batches else copy.size_bytes,
        counts.left_out_records,
        counts.left_out_of_transactions,
        aborted_at,
        tuple(copy.missing),
    )
