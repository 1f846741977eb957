"""The public `doctor`: everything that is wrong with log directories, found without a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.examination import Examination
from pylog.checks.partition_report import LogDirectoryReport, PartitionReport
from pylog.checks.report import DoctorReport
from pylog.errors import LogStorageError
from pylog.files.file_names import find_partition_directory_name
from pylog.files.file_user import FileUser
from pylog.files.partition_metadata import format_uuid
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.locations import is_remote, name_of, parent_of, printable_location
from pylog.reading.log_directory import ensure_known_topics
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scheduling.worker_threads import SharedProgress, thread_count, usable_processors
from pylog.text.names import names_nearest_keyword

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pylog.checks.not_live import NotLiveDirectory
    from pylog.checks.partition_check import PartitionCheck
    from pylog.config.server_properties import ServerProperties
    from pylog.files.meta_properties import MetaProperties
    from pylog.findings.finding import Finding
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView


_MOST_THREADS = 16
_LEAST_BYTES_FOR_THREADS = 1024 * 1024  # of a partition; two threads are slower below


@names_nearest_keyword
def doctor(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    kafka_version: str | None = None,
    as_user: str | int | None = None,
    server_properties: ServerProperties | None = None,
) -> DoctorReport:
    """Read all of some partitions and return whatever is wrong with them, and worth knowing.

    Every checksum is verified and every record decoded; indexes, snapshots, checkpoints and the
    names of files are held against the batches. Nothing is changed or locked, and a broker may go
    on working on the directory. Each path is looked at by itself, so that replicas of several
    brokers may be given at once; what one broker's directories contradict each other in is found,
    too.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories. Those of a node are taken for its
        ``log.dirs``, in this order.
    topics
        Only these; None for all, internal ones included.
    partitions
        Only these numbers; None for all.
    threads
        How many partitions are read side by side. If None, as the environment variable
        ``PYLOG_NUM_THREADS`` says, else one where partitions have less than 1 MiB on average, and
        as many as there are processors where they have more, or lie in an object store. The
        findings and their order are the same for any number.
    progress
        Called now and then, in the caller's thread, with the bytes that have been read and those
        that there are.
    max_decompressed_bytes
        A batch that has more, decompressed, is a finding.
    kafka_version
        Version of the broker that will use the directories, "3.9" to "4.4"; the newest if None.
    as_user
        Name or id of the user that a broker runs as; if None, the owner of most of what lies in a
        log directory. What he may not do is a finding, whatever this process may do.
    server_properties
        Of the broker: how long it keeps committed offsets, how many partitions the topics of
        coordinators have, where the cluster's metadata is not here, and whether it starts with it.

    Returns
    -------
    DoctorReport
        The findings by partition and log directory.

    Raises
    ------
    UnknownTopicOrPartitionError
        A topic that was named is under none of the paths.
    LogStorageError
        A path cannot be read or holds no log.
    SegmentVanishedError
        A broker deletes or compacts a log faster than it can be looked at.
    ValueError
        ``threads`` is below 1, ``kafka_version`` is none of these, or this host knows no user of
        that name.

    Examples
    --------
    >>> for each in pylog.doctor("kafka/damaged", topics=["orders"]).partitions:
    ...     print(each.topic_partition, [finding.code for finding in each.findings])
    orders-0 ['damaged_batches']
    orders-1 ['torn_tail', 'high_watermark_above_log_end']
    """
    return examine(
        paths,
        topics=topics,
        partitions=partitions,
        threads=threads,
        progress=progress,
        max_decompressed_bytes=max_decompressed_bytes,
        kafka_version=(
            LATEST_KAFKA_VERSION if kafka_version is None else KafkaVersion.parse(kafka_version)
        ),
        as_user=None if as_user is None else FileUser.named(str(as_user)),
        server_properties=server_properties,
        keeps_checks=False,
    ).report


class Examined(NamedTuple):
    """What `doctor` returns, and the views and ranges that it comes from, in the same order."""

    report: DoctorReport
    partitions: list[PartitionCheck]
    # Partitions of which nothing is left, and the offsets ``[start, end)`` that they had.
    absent: dict[TopicPartition, tuple[int, int]]
    not_live: list[LogView]  # directories that are not live, beside live ones


def examine(  # noqa: PLR0913 - what `doctor` has
    paths: Iterable[str | os.PathLike[str]],
    *,
    topics: Iterable[str] | None,
    partitions: Iterable[int] | None,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
    max_decompressed_bytes: int,
    kafka_version: KafkaVersion = LATEST_KAFKA_VERSION,
    as_user: FileUser | None = None,
    server_properties: ServerProperties | None = None,
    keeps_checks: bool = True,
) -> Examined:
    """Do what `doctor` does; see there.

    Without ``keeps_checks`` the partitions are left out beside the report: of ten thousand they
    take most of the memory.
    """
    examination = Examination(paths, kafka_version, as_user)
    choice = _choose(topics, partitions, examination.views)
    views = [each for each in examination.views if choice.has(each.topic_partition)]
    not_live = [each for each in examination.not_live if choice.has(each.view.topic_partition)]
    checked: list[PartitionCheck | None] = [None] * len(views)
    reports, found = _check_all(
        examination,
        views,
        not_live,
        threads,
        max_decompressed_bytes,
        progress,
        checked if keeps_checks else None,
    )
    examination.look_at_groups(views, server_properties)
    examination.look_at_properties(server_properties)
    # What a broker has deleted meanwhile was on its way out when it was looked at.
    deleted = {
        printable_location(each.directory.path)
        for each in (views if topics is None else ())
        if each.directory.was_deleted()
    }
    # One that was moved meanwhile may have been seen on both disks.
    reports = list({each.path: each for each in reports if each.path not in deleted}.values())
    directories = [
        LogDirectoryReport(
            printable_location(each.path),
            each.is_clean,
            each.is_of_a_controller,
            each.lacks_metadata,
            [
                finding
                for finding in _printable(
                    examination.findings_of(each, zip(not_live, found, strict=True))
                )
                if not _is_in(finding.path, deleted)
            ],
            *_identity(each.meta),
            examination.positions.get(each.path, {}),
        )
        for each in examination.checks
    ]
    report = DoctorReport(reports, directories)
    beside = [each.view for each in not_live]
    kept = {
        each.view.directory.path: each
        for each in checked
        if each is not None and printable_location(each.view.directory.path) not in deleted
    }
    return Examined(report, list(kept.values()), _absent(report, choice), beside)


def _is_in(path: str, directories: Collection[str]) -> bool:
    return path in directories or parent_of(path) in directories


def _report_of(check: PartitionCheck) -> PartitionReport:
    return PartitionReport(
        check.view.topic_partition,
        printable_location(check.view.directory.path),
        _printable(check.findings),
        check.size_bytes,
        check.scanned_bytes,
        check.start_offset,
        check.end_offset,
        check.offsets,
        None if check.start is None else check.start.printable(),
    )


def _absent(report: DoctorReport, choice: _Choice) -> dict[TopicPartition, tuple[int, int]]:
    here = {each.topic_partition for each in report.partitions}
    absent = {}
    for each in report.gone:
        named = find_partition_directory_name(name_of(each.path))
        if named is not None and choice.has(named.topic_partition):
            absent[named.topic_partition] = each.next_offset or 0, each.end_offset or 0
    return {each: offsets for each, offsets in absent.items() if each not in here}


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which partitions are looked at; None for all."""

    topics: set[str] | None
    numbers: set[int] | None

    def has(self, topic_partition: TopicPartition) -> bool:
        topic, number = topic_partition
        is_of_topic = self.topics is None or topic in self.topics
        return is_of_topic and (self.numbers is None or number in self.numbers)


def _choose(
    topics: Iterable[str] | None, partitions: Iterable[int] | None, known: Iterable[LogView]
) -> _Choice:
    names = None
    if topics is not None:
        names = {topics} if isinstance(topics, str) else set(topics)
        ensure_known_topics(sorted(names), {view.topic for view in known})
    return _Choice(names, None if partitions is None else set(partitions))


def _identity(meta: MetaProperties | None) -> tuple[str | None, int | None, str | None]:
    if meta is None:
        return None, None, None
    directory_id = meta.directory_id
    return (
        meta.cluster_id,
        meta.node_id,
        None if directory_id is None else format_uuid(directory_id),
    )


def _printable(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings whose paths show no secrets of a URI."""
    return [each._replace(path=printable_location(each.path)) for each in findings]


def _check_all(  # noqa: PLR0913, PLR0917 - what `examine` has
    examination: Examination,
    views: Sequence[LogView],
    not_live: Sequence[NotLiveDirectory],
    threads: int | None,
    max_decompressed_bytes: int,
    progress: Callable[[int, int], None] | None,
    kept: list[PartitionCheck | None] | None,
) -> tuple[list[PartitionReport], list[list[Finding]]]:
    """Return what is wrong with each partition; the largest are looked at first."""
    sizes = [*map(_size_of, views), *(each.size_bytes for each in not_live)]
    shared = SharedProgress(sum(sizes), progress)
    reports: dict[int, PartitionReport] = {}
    found: dict[int, list[Finding]] = {}

    def check(place: int) -> None:
        if place < len(views):
            checked = examination.check(
                views[place],
                max_decompressed_bytes=max_decompressed_bytes,
                on_bytes=shared.advance,
            )
            reports[place] = _report_of(checked)
            if kept is not None:
                kept[place] = checked
        else:
            found[place] = not_live[place - len(views)].findings(
                max_decompressed_bytes=max_decompressed_bytes, on_bytes=shared.advance
            )

    largest_first = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    count = thread_count(threads, default=_threads_that_pay(views, sizes))
    shared.side_by_side(check, largest_first, min(_MOST_THREADS, count))
    return [reports[place] for place in sorted(reports)], [found[place] for place in sorted(found)]


def _threads_that_pay(views: Sequence[LogView], sizes: Sequence[int]) -> int:
    """Return one for small partitions: most of their time they hold Python's lock, in turns."""
    is_far = any(is_remote(view.directory.path) for view in views)
    is_small = sum(sizes) < _LEAST_BYTES_FOR_THREADS * len(sizes)
    return 1 if is_small and not is_far else usable_processors()


def _size_of(view: LogView) -> int:
    """Return the size of a partition's files, 0 where it cannot be listed: that is a finding."""
    try:
        return view.size_bytes
    except LogStorageError:
        return 0
