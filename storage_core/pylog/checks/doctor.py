"""The public `doctor`: everything that is wrong with log directories, found without a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.files import UNREADABLE_CHECKPOINT
from pylog.checks.findings import Severity
from pylog.checks.log_directory import (
    check_log_directories,
    findings_between,
    held_partitions,
    log_directories_of,
    node_findings,
)
from pylog.checks.partition import check_partition, not_live_directories
from pylog.checks.permissions import BrokerUsers
from pylog.checks.replicas import replica_findings
from pylog.checks.report import DoctorReport, LogDirectoryReport, PartitionReport
from pylog.errors import LogStorageError
from pylog.files.file_names import find_partition_directory_name
from pylog.files.file_user import FileUser
from pylog.files.partition_metadata import format_uuid
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.locations import name_of, parent_of, printable_location
from pylog.reading.discovery import directory_identity, discover_partitions
from pylog.reading.log_directory import LogDirectory, ensure_known_topics
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scheduling.worker_threads import SharedProgress, thread_count, usable_processors
from pylog.text.names import names_nearest_keyword
from pylog.writing.node import nodes_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from pylog.checks.findings import Finding
    from pylog.checks.log_directory import LogDirectoryCheck
    from pylog.checks.partition import NotLiveDirectory
    from pylog.checks.partition_check import PartitionCheck
    from pylog.files.meta_properties import MetaProperties
    from pylog.model import TopicPartition
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node


_MOST_THREADS = 16


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
        Log directories or topic-partition directories.
    topics
        Only these; None for all, internal ones included.
    partitions
        Only these numbers; None for all.
    threads
        How many partitions are read side by side; as many as there are processors if None, or as
        the environment variable ``PYLOG_NUM_THREADS`` says. The findings and their order are the
        same for any number.
    progress
        Called now and then, in the caller's thread, with the bytes that have been read and those
        that there are.
    max_decompressed_bytes
        A batch that has more, decompressed, is a finding.
    kafka_version
        Of the broker that is to start on the directories, "3.9" to "4.4"; the newest if None.
    as_user
        Name or id of the user that a broker runs as; if None, the owner of most of what lies in a
        log directory. What he may not do is a finding, whatever this process may do.

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
    ).report


class Examination(NamedTuple):
    """What `doctor` returns, and the views and ranges that it comes from, in the same order."""

    report: DoctorReport
    partitions: list[PartitionCheck]
    # Partitions of which nothing is left, and the offsets ``[start, end)`` that they had.
    absent: dict[TopicPartition, tuple[int, int]]


class _Opened(NamedTuple):
    """What lies under some paths."""

    views: list[LogView]  # live partitions
    not_live: list[NotLiveDirectory]
    checks: list[LogDirectoryCheck]
    nodes: dict[str, Node]  # whose each log directory is
    users: BrokerUsers


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
) -> Examination:
    """Do what `doctor` does; see there."""
    opened = _open(paths, kafka_version, as_user)
    views, checks, nodes = opened.views, opened.checks, opened.nodes
    choice = _choose(topics, partitions, views)
    chosen = sorted(
        (view for view in views if choice.has(view.topic_partition)),
        key=lambda view: (view.directory.log_directory, view.topic_partition),
    )
    not_live = [each for each in opened.not_live if choice.has(each.view.topic_partition)]
    count = thread_count(threads, default=usable_processors())
    checked, found = _check_all(
        chosen, opened, not_live, min(_MOST_THREADS, count), max_decompressed_bytes, progress
    )
    of_nodes: dict[str, list[Finding]] = {}
    promoted = [each.view for each in opened.not_live if not each.has_live]
    for view, finding in node_findings([*views, *promoted], nodes):
        of_nodes.setdefault(view.directory.path, []).append(finding)
    metas = {each.path: each.meta for each in checks}
    for check, finding in replica_findings(checked, metas):
        of_nodes.setdefault(check.view.directory.path, []).append(finding)
    checked = [
        each._replace(findings=[*of_nodes.get(each.view.directory.path, ()), *each.findings])
        for each in checked
    ]
    between: dict[str, list[Finding]] = {}
    for each, findings in zip(not_live, found, strict=True):
        place = each.view.directory
        errors = [one for one in of_nodes.get(place.path, ()) if one.severity is Severity.ERROR]
        between.setdefault(place.log_directory, []).extend([*errors, *findings])
    for path, finding in findings_between(checks, views, nodes):
        between.setdefault(path, []).append(finding)
    shared: dict[str, list[Finding]] = {}
    reports = [_report(check, {each.path for each in checks}, shared) for check in checked]
    directories = [
        LogDirectoryReport(
            printable_location(each.path),
            each.is_clean,
            each.is_of_a_controller,
            each.lacks_metadata,
            _printable([*each.findings, *shared.get(each.path, ()), *between.get(each.path, ())]),
            *_identity(each.meta),
        )
        for each in checks
    ]
    report = DoctorReport(reports, directories)
    return Examination(report, checked, _absent(report, choice))


def _absent(report: DoctorReport, choice: _Choice) -> dict[TopicPartition, tuple[int, int]]:
    here = {each.topic_partition for each in report.partitions}
    absent = {}
    for each in report.gone:
        named = find_partition_directory_name(name_of(each.path))
        if named is not None and choice.has(named.topic_partition):
            absent[named.topic_partition] = each.next_offset or 0, each.end_offset or 0
    return {each: offsets for each, offsets in absent.items() if each not in here}


def _open(
    paths: Iterable[str | os.PathLike[str]],
    kafka_version: KafkaVersion,
    as_user: FileUser | None,
) -> _Opened:
    views: dict[str | tuple[int, int], LogView] = {}
    others: dict[str | tuple[int, int], PartitionDirectory] = {}
    checks: dict[str | tuple[int, int], LogDirectoryCheck] = {}
    directories = [directory for path in paths for directory in _log_directories(path)]
    for directory in directories:
        for view in directory:
            views.setdefault(directory_identity(view.directory.path), view)
        for each in directory.others:
            others.setdefault(directory_identity(each.path), each)
    nodes = nodes_of(
        [
            *(each for directory in directories for each in log_directories_of(directory)),
            *(view.directory.log_directory for view in views.values()),
        ],
        kafka_version,
    )
    users = BrokerUsers(as_user)
    held = held_partitions(views.values(), nodes)
    for directory in directories:
        for check in check_log_directories(directory, nodes, held, users):
            checks.setdefault(directory_identity(check.path), check)
    not_live = not_live_directories(
        (each for identity, each in others.items() if identity not in views), nodes, held, users
    )
    return _Opened(list(views.values()), not_live, list(checks.values()), nodes, users)


def _log_directories(path: str | os.PathLike[str]) -> list[LogDirectory]:
    """Return what lies under a path; more than one if a partition lies there twice (t-0, t-00)."""
    found = discover_partitions(path)
    # What is not live is looked at only if the path names nothing else.
    others = [] if all(each.state for each in found) else [each for each in found if each.state]
    each_once: list[dict[TopicPartition, PartitionDirectory]] = [{}]
    for each in found:
        if each not in others:
            have_room = (one for one in each_once if each.topic_partition not in one)
            place = next(have_room, None)
            if place is None:
                place = {}
                each_once.append(place)
            place[each.topic_partition] = each
    first, *more = (list(one.values()) for one in each_once)
    include_stray = not others
    return [
        LogDirectory([*first, *others], include_stray=include_stray),
        *(LogDirectory(each, include_stray=include_stray) for each in more),
    ]


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


def _report(
    check: PartitionCheck, log_directories: set[str], shared: dict[str, list[Finding]]
) -> PartitionReport:
    """Return a partition's report; what is wrong with a checkpoint is said of its directory."""
    findings = []
    for each in check.findings:
        log_directory = parent_of(each.path)
        if each.code == UNREADABLE_CHECKPOINT and log_directory in log_directories:
            known = shared.setdefault(log_directory, [])
            if each not in known:
                known.append(each)
        else:
            findings.append(each)
    return PartitionReport(
        check.view.topic_partition,
        printable_location(check.view.directory.path),
        _printable(findings),
        check.size_bytes,
        check.scanned_bytes,
        check.start_offset,
        check.end_offset,
        check.offsets,
        None if check.start is None else check.start.printable(),
    )


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


def _check_all(
    views: Sequence[LogView],
    opened: _Opened,
    not_live: Sequence[NotLiveDirectory],
    threads: int,
    max_decompressed_bytes: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[PartitionCheck], list[list[Finding]]]:
    """Return what is wrong with each partition; the largest are looked at first."""
    sizes = [*map(_size_of, views), *(each.size_bytes for each in not_live)]
    shared = SharedProgress(sum(sizes), progress)
    checked: dict[int, PartitionCheck] = {}
    found: dict[int, list[Finding]] = {}

    def check(place: int) -> None:
        if place < len(views):
            view = views[place]
            checked[place] = check_partition(
                view,
                node=opened.nodes[view.directory.log_directory],
                user=opened.users.of(view.directory.log_directory),
                max_decompressed_bytes=max_decompressed_bytes,
                on_bytes=shared.advance,
            )
        else:
            found[place] = not_live[place - len(views)].findings(
                max_decompressed_bytes=max_decompressed_bytes, on_bytes=shared.advance
            )

    largest_first = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    shared.side_by_side(check, largest_first, threads)
    return [checked[place] for place in sorted(checked)], [found[place] for place in sorted(found)]


def _size_of(view: LogView) -> int:
    """Return the size of a partition's files, 0 where it cannot be listed: that is a finding."""
    try:
        return view.size_bytes
    except LogStorageError:
        return 0
