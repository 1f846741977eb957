"""What a broker makes of a log when it starts on its directory: it is started, on an overlay.

The log is loaded as a broker loads it (`pylog.log.log_loader`), on an overlay that is forgotten
afterwards, and what has become of its files is what a broker would do.

Source: LogManager.loadLogs, LogLoader (Kafka 4.3).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.permissions import denial, restricted
from pylog.checks.swaps import broken_swap
from pylog.config import LogConfig, LogManagerConfig, RecoveryMode
from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    LogDirectoryError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.files import disk
from pylog.files.checkpoint_file import known_offset_checkpoint
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.file_names import (
    DELETED_FILE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    SEGMENT_FILE_SUFFIXES,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.file_user import READ, DeniedError
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.overlay import Overlay
from pylog.files.owned_directories import file_names
from pylog.files.quorum_state import QUORUM_STATE
from pylog.files.storage import is_folder
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding
from pylog.locations import is_remote, join, name_of, printable_location
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_deleted, load_log
from pylog.log_file.batch_walk import read_header
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from pylog.checks.swaps import BrokenSwap
    from pylog.files.file_user import FileUser
    from pylog.model import OffsetPosition, TopicPartition
    from pylog.producers.producer_state_entry import TxnMetadata
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView

_GONE = "file is gone (deleted or renamed)"
_CONFIG, _MANAGER_CONFIG = LogConfig(), LogManagerConfig()


class BrokerStart(NamedTuple):
    """The result of a simulated start: what a broker would do to one log."""

    is_clean: bool  # whether the marker of a clean stop is there; a broker reads few batches then
    scanned_segments: int  # how many segments it would scan
    # Which ``.log`` file it would cut off, at which byte, and the log's end then; None where it
    # cuts nothing.
    cut_path: str | None = None
    cut_position: int | None = None
    cut_offset: int | None = None
    # The offsets ``[start, end)`` of what it cuts off and deletes, where the log's end stays.
    cut_offsets: tuple[int | None, int | None] = (None, None)
    lost_bytes: int = 0  # of that file and of the segments that it would delete
    deleted_segments: int = 0  # how many those are
    # The ``.log`` file of which it does not find the last batches: it reads on from the last entry
    # of the offset index, which may lead behind them. None where it finds all.
    overlooked_path: str | None = None
    end_offset: int = 0  # the offset after the last batch that is on the disk now
    refusal: Finding | None = None  # why it takes the log directory offline, or ends
    # Of the log once it is started; unless it is refused.
    log_start_offset: int = 0
    log_end_offset: int = 0
    # Its files then, and their sizes, by name; the active segment's indexes have their full size.
    files: Mapping[str, int] = MappingProxyType({})
    # Whether intact batches go, which is not seen at the end of a log that is cut in the middle.
    cuts_intact: bool = False
    broken_swap: BrokenSwap | None = None  # what it puts in the place of intact segments
    recovered: frozenset[str] = frozenset()  # ``.log`` files that it scans, and indexes again
    # Where the first transaction begins that its producers' state has as open; None without one.
    first_undecided_offset: int | None = None
    open_transactions: tuple[TxnMetadata, ...] = ()  # all of them
    losses: tuple[Finding, ...] = ()  # of what it loses records, with times
    # Whether it reads the log while it loads it, for the offset of a transaction. If the log
    # directory is offline already, that ends the broker.
    is_read_on_loading: bool = False

    @property
    def loses_records(self) -> bool:
        """Whether batches, intact or damaged, would be removed or hidden; not just a torn tail."""
        if self.broken_swap is not None or self.cuts_intact:
            return True
        if self.cut_offset is None:
            return self.overlooked_path is not None
        return self.deleted_segments > 0 or self.cut_offset < self.end_offset

    @property
    def leaves_log(self) -> bool:
        """Whether the start leaves every batch where it was."""
        is_loaded = self.refusal is None and self.overlooked_path is None
        return is_loaded and self.cut_path is None and self.broken_swap is None

    def found_losses(self) -> list[Finding]:
        """Return findings about the records that a start loses, without their times."""
        losses = []
        if self.broken_swap is not None:
            path, _, offset, end, _ = self.broken_swap
            losses.append(_lost(path, self._swap_text(), None, offset, end))
        if self.overlooked_path is not None:
            text = self._end_text()
            losses.append(_lost(self.overlooked_path, text, None, self.log_end_offset, None))
        elif self.cut_path is not None and (self.broken_swap is None or self._ends_earlier):
            offset, end = (self.cut_offset, None) if self._ends_earlier else self.cut_offsets
            text = self._end_text()
            losses.append(_lost(self.cut_path, text, self.cut_position, offset, end))
        return losses

    @property
    def foreign_swaps(self) -> tuple[str, ...]:
        """Paths of ``.swap`` files that it takes, and that have other records than the log."""
        return () if self.broken_swap is None else self.broken_swap.foreign

    @property
    def _ends_earlier(self) -> bool:
        return self.cut_offset is not None and self.cut_offset < self.end_offset

    def printable(self) -> BrokerStart:
        """Return it with a path that shows no secrets of a URI."""
        cut, overlooked, swap = self.cut_path, self.overlooked_path, self.broken_swap
        return self._replace(
            cut_path=None if cut is None else printable_location(cut),
            overlooked_path=None if overlooked is None else printable_location(overlooked),
            broken_swap=swap and swap._replace(path=printable_location(swap.path)),
            losses=tuple(each._replace(path=printable_location(each.path)) for each in self.losses),
        )

    def describe(self) -> str:
        """Return a sentence about what a broker would do."""
        if self.refusal is not None:
            return f"a broker does not start on it: {self.refusal.message}"
        return self._end_text() if self.broken_swap is None else self._swap_text()

    def _swap_text(self) -> str:
        name, reason = "", ""
        if self.broken_swap is not None:
            name, reason = name_of(self.broken_swap.path), self.broken_swap.reason
        return f"a broker puts {name} in the place of what it was made from, and the file {reason}"

    def _end_text(self) -> str:
        if self.overlooked_path is not None:
            return (
                f"a broker starts on it, and takes offset {self.log_end_offset} for the end of the "
                f"log, not {self.end_offset}: it does not serve the records from there on, and "
                "gives their offsets to new ones"
            )
        if self.cut_path is None:
            if not self.scanned_segments and not self.is_clean:
                return "a broker starts on it as it is: there is nothing to scan"
            if not self.scanned_segments:
                return "a broker starts on it as it is: it was shut down cleanly"
            if self.scanned_segments == 1:
                return "a broker scans the last segment alone, and finds it intact"
            return f"a broker scans the last {self.scanned_segments} segments: they are intact"
        where = f"cuts {name_of(self.cut_path)} off at byte {self.cut_position}"
        text = f"a broker {where}: {counted(self.lost_bytes, 'byte is', 'bytes are')} lost"
        if self.deleted_segments:
            text += f", {counted(self.deleted_segments, 'segment')} after it among them"
        if self._ends_earlier:
            text += f"; the log ends at offset {self.cut_offset} then, not {self.end_offset}"
        elif self.cuts_intact:
            text += "; there are intact batches among them"
        return text


def _lost(
    path: str, message: str, position: int | None, offset: int | None, end: int | None
) -> Finding:
    return kinds.LOST_AT_START.found(path, message, position, None, offset, end)


def broker_start(  # noqa: PLR0913 - the log, what is known of it, and who starts it
    view: LogView,
    end_offset: int,
    ends: Sequence[OffsetPosition] = (),
    damaged: Container[str] = (),
    user: FileUser | None = None,
    *,
    keeps_records: bool = False,
    config: LogConfig = _CONFIG,
) -> BrokerStart | None:
    """Start a log as a broker would that runs as a user, without changing it.

    ``ends`` are the offset and the byte after the last intact batch of each segment of the view,
    ``damaged`` the paths of ``.log`` files with damage. ``keeps_records`` tells that the topic is
    surely not compacted, ``config`` is the topic's.

    None for one in an object store, for one whose files are deleted meanwhile, since a broker works
    on it, and for one that this process may not read.
    """
    if is_remote(view.directory.path):
        return None
    try:
        start, logs = _start(view, end_offset, user, config)
        if start.refusal is not None:
            return None if start.refusal.kind == kinds.UNREADABLE else start
        segments = list(zip(view.segments, ends, strict=bool(ends)))
        replaced = logs.keys() - {name_of(each.file_path()) for each in view.segments}
        broken = broken_swap(segments, sorted(replaced), damaged, keeps_records=keeps_records)
        start = start._replace(broken_swap=broken)
        logs = {name: size for name, size in logs.items() if name not in replaced}
        return _with_losses(start, view.directory.path, logs, segments)
    except (FileNotFoundError, SegmentVanishedError):
        return None


def _start(
    view: LogView, end_offset: int, user: FileUser | None, config: LogConfig
) -> tuple[BrokerStart, dict[str, int]]:
    """Load the log in an overlay; return the result, and the sizes of ``.log`` files before."""
    is_clean, broker_user = _is_clean(view), user
    user = restricted(view.directory.path, user)
    with Overlay(is_quiet=True, user=user) as overlay:
        try:
            path = overlay.path(view.directory.path)
            overlay.follow_links(path)
            before = _logs(_sizes(path, LOG_FILE_SUFFIX))
            if find_partition_directory_name(name_of(path)) is None:
                named = join(os.path.dirname(path), str(view.topic_partition))  # noqa: PTH120
                overlay.replace(path, named)
                path = named
            loading = _loading(view, path, overlay, broker_user, config, is_clean=is_clean)
            log = load_log(loading)
            log.close_handlers()
            after = _sizes(path)
            if user is not None:
                _go_on(view, path, overlay, after)
        except SegmentVanishedError:
            raise
        except (LogStorageError, PermissionError) as error:
            refusal = _refusal(view.directory.path, error, overlay)
            return BrokerStart(is_clean, 0, end_offset=end_offset, refusal=refusal), {}
    start = BrokerStart(
        loading.had_clean_shutdown,
        len(set(loading.recovered_segments)),
        end_offset=end_offset,
        recovered=frozenset(map(name_of, loading.recovered_segments)),
        first_undecided_offset=log.first_unstable_offset,
        open_transactions=log.producer_state.open_transactions,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        files=after,
        is_read_on_loading=loading.had_unstable_offset,
    )
    return start, before


def _go_on(view: LogView, path: str, overlay: Overlay, files: Mapping[str, int]) -> None:
    """Do what a broker does with a log within minutes of its start.

    It opens each segment to write to it, and its indexes when somebody reads there, or when it
    looks for what retention removes. It writes the epoch of each new leader.

    Source: FileRecords.open, AbstractIndex, LeaderEpochFileCache.assign, FileQuorumStateStore
    (Kafka 4.4).
    """
    for name in files:
        if name.endswith(SEGMENT_FILE_SUFFIXES) and find_segment_file_name(name) is not None:
            overlay.open(join(path, name)).close()
    if not view.directory.state:
        overlay.write_atomically(join(path, LEADER_EPOCH_CHECKPOINT), b"")
    if view.topic_partition == CLUSTER_METADATA:
        overlay.write_atomically(join(path, QUORUM_STATE), b"")


def _is_clean(view: LogView) -> bool:
    # A node recovers the log of the metadata at each start, whole (KafkaMetadataLog).
    is_metadata = view.topic_partition == CLUSTER_METADATA
    return has_clean_shutdown(view.directory.log_directory) and not is_metadata


def _loading(
    view: LogView,
    path: str,
    overlay: Overlay,
    user: FileUser | None,
    config: LogConfig = _CONFIG,
    *,
    is_clean: bool,
) -> LogLoading:
    log_directory = view.directory.log_directory
    is_metadata = view.topic_partition == CLUSTER_METADATA

    def offset(name: str) -> int:
        path = join(log_directory, name)
        return 0 if is_metadata else _offset(path, view.topic_partition, user)

    return LogLoading(
        directory=path,
        config=config,
        manager_config=_MANAGER_CONFIG,
        context=LogContext(io=overlay, failures=LogDirFailureChannel(is_logged=False)),
        had_clean_shutdown=is_clean,
        recovery_point_checkpoint=offset(RECOVERY_POINT_CHECKPOINT),
        log_start_offset_checkpoint=offset(LOG_START_OFFSET_CHECKPOINT),
        recovery_mode=RecoveryMode.BROKER_START,
        high_watermark_start=lambda _start, end: end,
    )


def deletion_refusal(view: LogView, user: FileUser | None = None) -> Finding | None:
    """Return why a directory that is being deleted ends a broker; None if it does not."""
    if is_remote(view.directory.path):
        return None
    user = restricted(view.directory.path, user)
    with (
        suppress(FileNotFoundError, SegmentVanishedError),
        Overlay(is_quiet=True, user=user) as overlay,
    ):
        try:
            path = overlay.path(view.directory.path)
            overlay.follow_links(path)
            load_deleted(_loading(view, path, overlay, None, is_clean=_is_clean(view)))
            for name in file_names(path) if user is not None else ():
                if name.endswith(LOG_FILE_SUFFIX):
                    overlay.open(join(path, name)).close()
                overlay.remove(join(path, name))
        except SegmentVanishedError:
            raise
        except (LogStorageError, PermissionError) as error:
            return _refusal(view.directory.path, error, overlay)
    return None


def _with_losses(
    start: BrokerStart,
    directory: str,
    logs: Mapping[str, int],
    segments: Sequence[tuple[LogSegmentView, OffsetPosition]],
) -> BrokerStart:
    """Return a start with what it costs; ``logs`` are the sizes of the ``.log`` files before."""
    after = start.files
    intact_ends = {name_of(each.file_path()): end.position for each, end in segments}
    swapped = {
        name_of(each.file_path()).removesuffix(each.state) for each, _ in segments if each.state
    }
    kept = _kept(logs, {name: after[name] for name in after if name not in swapped})
    changed = [name for name, size in logs.items() if kept[name] < size]
    if not changed:
        if start.log_end_offset < start.end_offset:
            return start._replace(overlooked_path=join(directory, list(_logs(after))[-1]))
        return start
    for name in changed:
        if not os.path.lexists(join(directory, name)):
            raise SegmentVanishedError(_GONE, join(directory, name))
    first = changed[0]
    return start._replace(
        cut_path=join(directory, first),
        cut_position=after.get(first, 0),
        cut_offset=start.log_end_offset,
        cut_offsets=_cut_offsets(segments, changed, after.get(first, 0)),
        lost_bytes=sum(logs[name] - kept[name] for name in changed),
        deleted_segments=sum(name not in after for name in changed[1:]),
        cuts_intact=any(kept[name] < intact_ends.get(name, 0) for name in changed),
    )


def _cut_offsets(
    segments: Sequence[tuple[LogSegmentView, OffsetPosition]],
    changed: Container[str],
    position: int,
) -> tuple[int | None, int | None]:
    """Return from where to where files of a log hold offsets, the first one from a byte on."""
    found = [(each, end) for each, end in segments if name_of(each.file_path()) in changed]
    if not found:
        return None, None
    first, end = found[0][0], found[-1][1].offset
    if not position:
        return first.base_offset, end
    try:
        with first.open_log() as source:
            batch = read_header(source, position, source.size())
    except CorruptRecordError:
        return None, None
    return (None, None) if batch is None else (batch.header.offset, end)


def _refusal(directory: str, error: LogStorageError | PermissionError, overlay: Overlay) -> Finding:
    """Return why a start fails; `SegmentVanishedError` if a running broker removed the file."""
    path = os.fspath(getattr(error, "path", None) or directory)
    if overlay.has_vanished(path):
        raise SegmentVanishedError(_GONE, path) from error
    # An overlay knows the real path alone, and the user has given another one.
    real = os.path.realpath(directory)
    if path == real or path.startswith(f"{real}/"):
        path = directory + path[len(real) :]
    denied = denial(path, error)
    if denied is not None:
        return denied
    reason = getattr(error, "reason", str(error))
    position = getattr(error, "position", None)
    # What an operating system refuses to open takes the log directory offline.
    effect = Effect.OFFLINE if path.endswith(SEGMENT_FILE_SUFFIXES) and disk.is_dir(path) else None
    refusal = kinds.START_REFUSED.found(path, reason, position)
    return refusal._replace(own_effect=effect)


def _sizes(directory: str, suffix: str = "") -> dict[str, int]:
    """Return the sizes of a log's files with a suffix, by name; of none that waits for deletion."""
    sizes = {}
    with disk.scandir(directory) as entries:
        for entry in entries:
            is_kept = entry.name.endswith(suffix) and not entry.name.endswith(DELETED_FILE_SUFFIX)
            if is_kept and not is_folder(entry):
                with suppress(OSError):  # it is a finding
                    sizes[entry.name] = entry.stat().st_size
    return dict(sorted(sizes.items()))


def _logs(sizes: Mapping[str, int]) -> dict[str, int]:
    names = {name: find_segment_file_name(name) for name in sizes}
    return {
        name: sizes[name]
        for name, each in names.items()
        if each is not None and each.suffix == LOG_FILE_SUFFIX and not each.state
    }


def _kept(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return how many bytes of each ``.log`` are left, in all files that it was split into."""
    names = list(before)
    kept = dict.fromkeys(names, 0)
    for name, size in _logs(after).items():
        place = bisect_right(names, name) - 1
        if place >= 0:
            kept[names[place]] += size
    return kept


def _offset(path: str, topic_partition: TopicPartition, user: FileUser | None) -> int:
    try:
        if user is not None and not is_remote(path):
            user.ensure_may(path, READ)
        return known_offset_checkpoint(path).get(topic_partition, 0)
    except (CorruptCheckpointError, LogDirectoryError, DeniedError, FileNotFoundError):
        return 0
