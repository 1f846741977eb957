"""The manager of a log directory that is opened for changes, and closed again."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pylog.config import RecoveryMode
from pylog.errors import LogStorageError, SegmentVanishedError, UnexpectedFileError
from pylog.files import disk
from pylog.files.file_names import (
    LOG_FILE_SUFFIX,
    META_PROPERTIES,
    PARTITION_METADATA,
)
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.overlay import Overlay
from pylog.files.owned_directories import (
    NOT_LOADED,
    partition_directories,
    writable_log_directory,
)
from pylog.files.partition_metadata import read_partition_metadata
from pylog.findings import kinds
from pylog.lazy_modules import LazyModule
from pylog.locations import printable_location
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.writing.topic_configs import cluster_topic_configs, only_replica_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pylog.config import LogConfig
    from pylog.config.server_properties import ServerProperties
    from pylog.files.cleaner_checkpoint import CleanerCheckpoint
    from pylog.log.log_manager import ClosedLogs
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.reading import log_directory, removal_preview, slicing  # import NumPy
    from pylog.writing import node as node_rules
else:
    node_rules = LazyModule("pylog.writing.node")
    log_directory = LazyModule("pylog.reading.log_directory")
    removal_preview = LazyModule("pylog.reading.removal_preview")
    slicing = LazyModule("pylog.reading.slicing")

_LOGGER = logging.getLogger(__name__)


def own_log_directory(  # noqa: PLR0913 - all that a broker is configured to, and what it may do
    path: str | os.PathLike[str],
    *,
    must_exist: bool = False,
    server_properties: ServerProperties | None = None,
    topic_configs: Mapping[str, LogConfig] | None = None,
    context: LogContext | None = None,
    high_watermark: str = "checkpoint",
    recover_as_broker: bool = False,
    works_on: Callable[[TopicPartition], bool] | None = None,
    before_changes: Callable[[ClosedLogs], object] = lambda _: None,
    opens_logs: bool = True,
) -> LogManager:
    """Return the manager of one log directory; it owns the directory within its ``with`` block.

    Parameters
    ----------
    path
        As for `writable_log_directory`.
    must_exist
        Whether it is an error if the directory does not exist; otherwise it is created.
    server_properties
        What a broker's file says, which the logs are then configured to; Kafka's defaults if None.
        A directory that is not among its log directories gets a warning.
    topic_configs
        Of single topics; they win over what is stored. None for what the metadata of the cluster
        have of those of which nothing is stored.
    context
        The clock, the disk and the background work; the real ones if None. A failure of the disk is
        then not logged as well, since whatever is done in the block raises it.
    high_watermark
        Where the high watermark of each log starts. ``checkpoint``: as on a broker, by the
        directory's checkpoint and, where this node is the only replica, by the cluster's metadata.
        ``log-end``: at the log's end; for a directory whose cluster is gone.
    recover_as_broker
        Whether recovery drops intact batches after damage, as a broker's does. Otherwise such a log
        stays closed and unchanged, and the others are opened (`LogManager.closed_logs`).
    works_on
        Tells the partitions that the caller works on. If all their logs stay closed, entering the
        block raises why, and nothing has been changed.
    before_changes
        As for `LogManager`; not beside ``works_on``; see `pylog.log.log_manager.ensure_open`.
    opens_logs
        As for `LogManager`.

    Raises
    ------
    LogDirectoryError, ValueError
        See `writable_log_directory`. Entering the block raises what `LogManager.startup` does.
    CorruptCheckpointError, UnexpectedFileError
        A KRaft broker would not start: a ``partition.metadata`` cannot be read, or a ``-future``
        directory lies beside its live partition. What a broker would set aside is a warning.

    Examples
    --------
    >>> with pylog.logs.own_log_directory("logs") as manager:
    ...     log = manager.get_or_create_log(pylog.TopicPartition("orders", 0))
    ...     print(log.log_end_offset)
    0
    """
    local = writable_log_directory(path, must_exist=must_exist)
    _heed_node(local)
    if works_on is not None:
        before_changes = _ensure_some_open(local, works_on)
    if server_properties is not None:
        server_properties.warn_unless_log_dir(printable_location(local))
    if topic_configs is None:
        topic_configs = cluster_topic_configs(local, server_properties)
    return LogManager(
        [local],
        None if server_properties is None else server_properties.log_config,
        topic_configs=topic_configs,
        manager_config=None if server_properties is None else server_properties.manager_config,
        context=context or LogContext(failures=LogDirFailureChannel(is_logged=False)),
        is_only_replica=only_replica_rule(
            printable_location(local), server_properties, high_watermark=high_watermark
        ),
        recovery_mode=RecoveryMode.AS_BROKER if recover_as_broker else RecoveryMode.KEEP_INTACT,
        before_changes=before_changes,
        opens_logs=opens_logs,
    )


def _heed_node(path: str) -> None:
    """Refuse a directory on which its KRaft node would not start; warn of what it sets aside."""
    if not disk.exists(os.path.join(path, META_PROPERTIES)):  # noqa: PTH118 - kept as text
        return
    node = node_rules.nodes_of([path])[path]
    if not node.is_kraft:
        return
    directories = [each for each in partition_directories(path) if each[1].state not in NOT_LOADED]
    live = {name.topic_partition for _, name in directories if not name.state}
    strays = []
    for directory, name in directories:
        with suppress(SegmentVanishedError):
            read_partition_metadata(os.path.join(directory, PARTITION_METADATA))  # noqa: PTH118
        if name.state and name.topic_partition in live:
            problem = node.future_problem(name.topic_partition, directory)
            if problem is not None:
                reason = f"{problem.reason}: a broker does not start on this; take one of them out"
                raise UnexpectedFileError(reason, directory)
        strays += [
            each
            for each in node.problems(name.topic_partition, directory)
            if each.kind == kinds.STRAY_PARTITION
        ]
    if strays:
        more = f", and {len(strays) - 1} more partitions" if len(strays) > 1 else ""
        _LOGGER.warning(
            "%s: %s; a broker sets it aside as -stray%s",
            *(printable_location(strays[0].path), strays[0].reason, more),
        )


def _ensure_some_open(
    path: str, is_meant: Callable[[TopicPartition], bool]
) -> Callable[[ClosedLogs], None]:
    """Return what raises, before anything is changed, if all logs stay closed that are meant."""

    def ensure(closed: ClosedLogs) -> None:
        if not closed:
            return
        directories = partition_directories(path)
        names = [name for _, name in directories if not name.state]
        meant = [each.topic_partition for each in names if is_meant(each.topic_partition)]
        if meant and all(each in closed for each in meant):
            raise closed[meant[0]]

    return ensure


class ChosenLogs(NamedTuple):
    """The logs of some topics, and what their cleaner asks beside them.

    Attributes
    ----------
    visit
        Yields the logs; each is open until the next one is asked for, where not all of them are.
    find_closed
        Returns those that stay closed, and why; all of them only after a visit.
    checkpoints, failures
        Up to where logs are clean, by log directory; which directories are offline.
    """

    visit: Callable[[], Iterator[UnifiedLog]]
    find_closed: Callable[[], ClosedLogs]
    checkpoints: Mapping[str, CleanerCheckpoint]
    failures: LogDirFailureChannel


def size_of_log(log_directory: str, topic_partition: TopicPartition) -> int:
    """Return the length of all ``.log`` files of a log that is not open."""
    directory = os.path.join(log_directory, str(topic_partition))  # noqa: PTH118 - kept as text
    with os.scandir(directory) as entries:
        return sum(each.stat().st_size for each in entries if each.name.endswith(LOG_FILE_SUFFIX))


class _NothingOpenError(LogStorageError):
    """All logs that were chosen stay closed, so nothing has to be changed."""


@contextmanager
def on_overlay(path: str, context: LogContext | None) -> Iterator[tuple[str, LogContext]]:
    """Give a directory, for a dry run, the path and the context with which to own it.

    Within the block everything can be done there, and nothing happens to it; nothing is locked.
    """
    with Overlay() as overlay:
        context = context or LogContext(failures=LogDirFailureChannel(is_logged=False))
        yield overlay.path(path), replace(context, io=overlay)


@contextmanager
def own_logs(  # noqa: PLR0913 - all that an owner is told
    path: str,
    topic_configs: Mapping[str, LogConfig],
    server_properties: ServerProperties | None,
    context: LogContext,
    *,
    high_watermark: str,
    recover_as_broker: bool,
    is_dry_run: bool = False,
    opens_all: bool = False,
) -> Iterator[ChosenLogs]:
    """Own a log directory within the block, for work on the logs of some topics.

    For a dry run on an overlay: what is done to the logs does not happen. With ``opens_all`` the
    logs are open in the whole block.
    """
    if is_dry_run:
        with (
            on_overlay(path, context) as (path_there, there),
            own_logs(
                path_there,
                topic_configs,
                server_properties,
                there,
                high_watermark=high_watermark,
                recover_as_broker=recover_as_broker,
                opens_all=opens_all,
            ) as owned,
        ):
            yield owned
        return
    chosen = {
        name.topic_partition
        for _, name in partition_directories(path)
        if not name.state and name.topic_partition.topic in topic_configs
    }
    closed: dict[TopicPartition, LogStorageError] = {}

    def note(found: ClosedLogs) -> None:
        closed.update((each, error) for each, error in found.items() if each in chosen)
        if closed and len(closed) == len(chosen):
            raise _NothingOpenError

    manager = own_log_directory(
        path,
        must_exist=True,
        server_properties=server_properties,
        topic_configs=topic_configs,
        context=context,
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
        before_changes=note,
        opens_logs=opens_all,
    )

    def find_closed() -> ClosedLogs:
        closed.update((each, e) for each, e in manager.closed_logs.items() if each in chosen)
        return dict(sorted(closed.items()))

    def visit() -> Iterator[UnifiedLog]:
        if opens_all:
            return (log for each, log in manager.logs.items() if each in chosen)
        return manager.visit(chosen.__contains__)

    with ExitStack() as stack:
        try:
            stack.enter_context(manager)
        except _NothingOpenError:
            yield ChosenLogs(lambda: iter(()), find_closed, {}, context.failures)
        else:
            yield ChosenLogs(visit, find_closed, manager.cleaner_checkpoints, context.failures)
