"""What ``ls`` tells of partitions: a row each, even where something cannot be read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pylog.cli import exit_status
from pylog.errors import CorruptRecordError
from pylog.files.partition_metadata import format_uuid
from pylog.inspect.attempts import Attempts
from pylog.inspect.findings.directory_findings import directory_findings
from pylog.inspect.findings.finding import Severity
from pylog.locations import shown
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.reading.log_directory import open_directory
from pylog.reading.log_end import ensure_last_batch_is_sound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.reading.log_view import LogView


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One live partition; None where a value is not there, or cannot be told.

    Attributes
    ----------
    log_end_offset
        Exclusive.
    size_bytes
        Bytes of all ``.log`` files.
    leader_epoch
        The latest.
    leftover_files
        Files ending in ``.deleted``, ``.cleaned`` or ``.swap``; not part of the log.
    findings
        What is wrong, a line each.
    notes
        What is worth to know and not wrong: that the log begins in remote storage.
    status
        Exit status that this partition asks for.
    """

    topic: str
    partition: int
    log_start_offset: int | None
    log_end_offset: int | None
    segments: int
    size_bytes: int
    leader_epoch: int | None
    topic_id: str | None
    leftover_files: int
    path: str
    log_directory: str
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    status: int = exit_status.SOUND

    def to_json(self) -> dict[str, Any]:
        """Return what ``ls --json`` has of the partition."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "logStartOffset": self.log_start_offset,
            "logEndOffset": self.log_end_offset,
            "segments": self.segments,
            "sizeInBytes": self.size_bytes,
            "leaderEpoch": self.leader_epoch,
            "topicId": self.topic_id,
            "leftoverFiles": self.leftover_files,
            "path": self.path,
            "findings": self.findings,
            "notes": self.notes,
        }


def list_partition(view: LogView) -> PartitionRow:
    """Return the row of one partition, from names, side files and a few batch headers."""
    attempts = Attempts()
    is_listed = attempts.read(lambda: view.listing) is not None
    segments = view.segments if is_listed else ()
    for segment in segments:
        attempts.read(segment.ensure_readable)
    metadata = attempts.read(lambda: view.metadata)
    log_start_offset = attempts.read(lambda: view.log_start_offset)
    log_end_offset = attempts.read(lambda: _log_end_offset(view, log_start_offset))
    if log_end_offset is not None:
        attempts.read(lambda: _check_last_batch(view))
    leader_epoch = attempts.read(lambda: _latest_leader_epoch(view))
    found = list(directory_findings(view)) if is_listed else []
    warnings = [
        f"{each.message} in {shown(each.path)}"
        for each in found
        if each.severity is Severity.WARNING
    ]
    status = max(map(exit_status.status_of, attempts.errors), default=exit_status.SOUND)
    if warnings:
        status = max(status, exit_status.FINDINGS)
    return PartitionRow(
        topic=view.topic,
        partition=view.partition,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        segments=len(segments),
        size_bytes=sum(segment.size_bytes for segment in segments),
        leader_epoch=leader_epoch,
        topic_id=None if metadata is None else format_uuid(metadata.topic_id),
        leftover_files=view.leftover_file_count if is_listed else 0,
        path=shown(view.directory.path),
        log_directory=shown(view.directory.log_directory),
        findings=[str(error) for error in attempts.errors] + warnings,
        notes=[each.message for each in found if each.severity is Severity.NOTE],
        status=status,
    )


def _log_end_offset(view: LogView, log_start_offset: int | None) -> int:
    """Return the log end offset; that of the files where the log's start cannot be told."""
    try:
        return view.next_offset if log_start_offset is None else view.log_end_offset
    except CorruptRecordError as error:
        if view.end.last is None:
            raise
        reason = (
            f"{error}; the batches before that end at offset {view.end.last.header.next_offset}"
        )
        raise CorruptRecordError(reason) from error


def _check_last_batch(view: LogView) -> None:
    if view.end.last is not None:
        ensure_last_batch_is_sound(view.segments[-1], view.end.last)


def _latest_leader_epoch(view: LogView) -> int | None:
    """Return what the checkpoint says or, where there is none, the last batch."""
    if view.leader_epochs:
        return view.leader_epochs[-1].epoch
    if view.end.last is None:
        return None
    epoch = view.end.last.header.partition_leader_epoch
    return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch


@dataclass(frozen=True, slots=True)
class Listing:
    """All that ``ls`` tells of some paths."""

    rows: list[PartitionRow]
    not_live: list[dict[str, Any]]

    @property
    def status(self) -> int:
        """The exit status: that of the worst row."""
        return max((row.status for row in self.rows), default=exit_status.SOUND)

    @property
    def totals(self) -> dict[str, int]:
        """What ``ls --json`` has as summary."""
        return {
            "topics": len({row.topic for row in self.rows}),
            "partitions": len(self.rows),
            "segments": sum(row.segments for row in self.rows),
            "sizeInBytes": sum(row.size_bytes for row in self.rows),
            "notLive": len(self.not_live),
            "leftoverFiles": sum(row.leftover_files for row in self.rows),
            "findings": sum(len(row.findings) for row in self.rows),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``ls --json`` prints."""
        return {
            "partitions": [row.to_json() for row in self.rows],
            "notLive": self.not_live,
            "summary": self.totals,
        }


def list_paths(paths: Iterable[str]) -> Listing:
    """Return the listing of some paths, each partition directory once.

    Each path is opened by itself, so that the replicas of several brokers may be listed at once.

    Raises
    ------
    LogStorageError
        A path cannot be read or holds no log.
    """
    views: dict[str, LogView] = {}
    not_live: dict[str, dict[str, Any]] = {}
    for path in paths:
        directory = open_directory(path)
        for view in directory:
            views.setdefault(os.path.realpath(view.directory.path), view)
        for each in directory.others:
            not_live[os.path.realpath(each.path)] = {
                "topic": each.topic_partition.topic,
                "partition": each.topic_partition.partition,
                "state": each.state.removeprefix("-"),
                "path": shown(each.path),
            }
    return Listing([list_partition(view) for view in views.values()], list(not_live.values()))
