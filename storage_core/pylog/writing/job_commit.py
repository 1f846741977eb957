"""The commit of a write job: what tasks have staged becomes part of the logs, as a whole and once.

Nobody else may change the log directory meanwhile: its ``.lock`` is held from step 1 to the end.

==== ======================================= ======================= ==============================
step what is done                            a crash after it leaves what the next opener does
==== ======================================= ======================= ==============================
0    tasks write staged files and sync them  staged files            nothing; swept by age
1    ``.lock`` is taken, logs are loaded, a  the same                the same
     pending commit of others is completed
2    staged files are looked at; those of    the same; some stamped  the same
     LogAppendTime topics are stamped
3    a long bookmark gets a file of its own  the file                removes it in a later step 8
     the manifest is published               the manifest            carries it out: 4 to 9
4    new topics are made                     some of their           makes the others
                                             partitions
5    a large staged file gets offsets where  some batches with       does it again
     it lies, and is synced                  offsets
6    it is renamed to a segment, which gets  a segment that may lack finds the batches by offset
     index entries                           its indexes             and checksum, and goes on
                                                                     after them; start-up has made
                                                                     the indexes
7    a small one is appended                 some of its batches     the same
8    the logs are flushed; the job is        the ledger's entry      removes manifest and files
     entered in the ledger (see
     `pylog.files.ledger`)
9    manifest and staged files are removed   some of them            manifest: the same; files:
                                                                     swept
==== ======================================= ======================= ==============================

Steps 5 to 7 are those of one partition. Those of different partitions of a large job are done by
threads side by side, so that a crash may leave each of them at another step: what the next opener
does, it decides for each partition alone. `SegmentAdoption` says which files become
segments.

What others see:

* readers of ours: nothing of the job before step 8, all of it after. While a manifest is there that
  the ledger does not have, a read ends its partitions at the announced base offsets, unless the log
  holds something that was not announced (`pylog.reading.discovery`);
* a broker that opens the directory after a crash: in steps 0 to 3 nothing; in 4 to 7 what has been
  appended so far, as ordinary records, and it may append after them. The rest of the job then goes
  to the end that the log has by then;
* a broker's consumers: partitions one after the other.

The next opener is `WriteJob.commit`, or whatever starts a `LogManager` there.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from pylog.errors import LogLockedError, LogStorageError, SegmentVanishedError
from pylog.files.bookmark_file import store_bookmark
from pylog.files.commit_manifest import (
    AnnouncedFile,
    AnnouncedPartition,
    Manifest,
    NewTopic,
)
from pylog.files.ledger import ask_ledger
from pylog.files.owned_directories import writable_log_directory
from pylog.files.partition_metadata import new_topic_id
from pylog.log.log_context import LogContext
from pylog.log.log_manager import ensure_open
from pylog.model import TimestampType
from pylog.staged_commit.staged_batches import StagedBatches, stamp_append_time
from pylog.writing.dead_jobs import sweep_dead_jobs, sweep_job
from pylog.writing.owned_directory import own_log_directory
from pylog.writing.segment_adoption import SegmentAdoption
from pylog.writing.staged_topic import rules_of
from pylog.writing.topics import closed_logs_of_topic, open_logs_of_topic
from pylog.writing.write_summary import PartitionSummary, WriteJobSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pylog.config import LogConfig
    from pylog.files.ledger import Ledger
    from pylog.files.staged_files import JobKey, StagedFile, StagedRecords, TopicRules
    from pylog.log.log_manager import LogManager
    from pylog.model import TopicPartition
    from pylog.writing.write_summary import JobDescription


def ensure_of_job(key: JobKey, staged: Iterable[StagedRecords]) -> None:
    """Raise `ValueError` unless all was staged for one job."""
    for each in staged:
        if each.key != key:
            msg = f"attempt {each.attempt!r} staged for {each.key}, not for {key}"
            raise ValueError(msg)


def abort(
    directory: str,
    key: JobKey,
    staged: Iterable[StagedRecords | None],
    context: LogContext | None = None,
) -> None:
    """Remove what was staged for a job; see `WriteJob.abort`."""
    local = writable_log_directory(directory)
    ensure_of_job(key, [each for each in staged if each is not None])
    if os.path.isdir(local):  # noqa: PTH112 - kept as text
        sweep_job(local, key, context or LogContext())


_FIRST_WAIT_SECONDS = 0.02
_LONGEST_WAIT_SECONDS = 0.5


def commit(
    job: JobDescription,
    staged: Sequence[StagedRecords],
    timeout: float,
    context: LogContext | None = None,
    *,
    recover_as_broker: bool = False,
) -> WriteJobSummary:
    """Append what was staged; see `WriteJob.commit`."""
    directory = writable_log_directory(job.directory)
    ensure_of_job(job.key, staged)
    with ExitStack() as stack:
        needed = {file.topic_partition for records in staged for file in records.files}
        manager = _open_within(
            partial(
                own_log_directory,
                directory,
                context=context,
                recover_as_broker=recover_as_broker,
                before_changes=ensure_open(needed.__contains__),
            ),
            timeout,
        )
        stack.push(manager.__exit__)  # it is open already
        context = context or LogContext()
        summary = JobCommit(job, directory, manager, context).commit(staged)
        sweep_job(directory, job.key, context)
        sweep_dead_jobs(directory, context)
    return summary


def _open_within(make_manager: Callable[[], LogManager], timeout: float) -> LogManager:
    """Return the open manager of the directory, waiting for it if need be."""
    deadline = time.monotonic() + timeout
    wait = _FIRST_WAIT_SECONDS
    while True:
        try:
            return make_manager().startup()
        except LogLockedError as error:
            if time.monotonic() + wait > deadline:
                reason = (
                    f"{error.reason}; nothing was written, after waiting for {timeout:g} s"
                    f"{_kind_of_process(error.process_id)}"
                )
                raise LogLockedError(reason, error.path, error.process_id) from error
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def _kind_of_process(process_id: int | None) -> str:
    """Return what the holder of a lock is, as the end of a sentence; nothing if it is unknown."""
    try:
        with open(f"/proc/{process_id}/cmdline", "rb") as file:  # noqa: PTH123
            command = file.read(1 << 20)
    except OSError:
        return ""
    words = command.split(b"\0")
    if b"kafka.Kafka" in words:
        return f" (process {process_id} is a Kafka broker)"
    name = os.path.basename(words[0]).decode(errors="replace")  # noqa: PTH119
    return f" (process {process_id} is {name})"


class JobCommit:
    """One commit in a directory that is owned; used once."""

    def __init__(
        self, job: JobDescription, directory: str, manager: LogManager, context: LogContext
    ) -> None:
        self._job = job
        self._directory = directory
        self._manager = manager
        self._context = context

    def commit(self, staged: Sequence[StagedRecords]) -> WriteJobSummary:
        """Append what was staged, unless the ledger has the job."""
        job = self._job
        if ask_ledger(self._directory, self._is_committed):
            return WriteJobSummary(job.job_id, job.batch_id, already_committed=True)
        manifest = self._manifest(staged)
        self._manager.carry_out(manifest)
        partitions = tuple(
            PartitionSummary(
                each.topic_partition,
                self._manager.get_log(each.topic_partition).log_end_offset,
                each.record_count,
                each.size_bytes,
            )
            for each in manifest.partitions
        )
        return WriteJobSummary(
            job.job_id,
            job.batch_id,
            already_committed=False,
            records=sum(each.records for each in partitions),
            size_bytes=sum(each.size_bytes for each in partitions),
            partitions=partitions,
        )

    def _is_committed(self, ledger: Ledger) -> bool:
        if ledger.has_job(self._job.key, self._job.fingerprint):
            return True
        ledger.ensure_room()
        return False

    def _manifest(self, staged: Sequence[StagedRecords]) -> Manifest:
        now_ms = self._context.clock.milliseconds()
        rules = {each.topic: each for records in staged for each in records.rules}
        for records in staged:
            for each in records.rules:
                self._ensure_same(each)
        by_partition: dict[TopicPartition, list[StagedFile]] = {}
        for records in staged:
            for file in records.files:
                by_partition.setdefault(file.topic_partition, []).append(file)
        return Manifest(
            uuid.uuid4().hex,
            self._job.key,
            now_ms,
            tuple(
                NewTopic(each.topic, new_topic_id(), len(each.partitions), dict(self._job.config))
                for each in rules.values()
                if not self._has_topic(each.topic)
            ),
            tuple(
                self._announced(place, files, now_ms)
                for place, files in sorted(by_partition.items())
            ),
            self._job.fingerprint,
            store_bookmark(self._context.io, self._directory, self._job.bookmark),
        )

    def _ensure_same(self, rules: TopicRules) -> None:
        now = self._rules_now(rules)
        if now.partitions == rules.partitions and now.properties == rules.properties:
            return
        changed = [
            f"{name} was {before}, is {after}"
            for (name, before), (_, after) in zip(rules.properties, now.properties, strict=True)
            if before != after
        ]
        if now.partitions != rules.partitions:
            before, after = len(rules.partitions), len(now.partitions)
            changed.append(f"it had {before} partitions, has {after}")
        msg = (
            f"topic {rules.topic!r} has changed since rows were staged for it "
            f"({'; '.join(changed)}): run {self._job.key} again"
        )
        raise LogStorageError(msg)

    def _config_of(self, topic: str) -> LogConfig:
        if self._has_topic(topic):
            return self._manager.config_of(topic)
        return self._manager.config.with_properties(self._job.config)

    def _partitions_of(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions, those of logs that stay closed among them."""
        closed = closed_logs_of_topic(self._manager, topic)
        return sorted({*open_logs_of_topic(self._manager, topic), *closed})

    def _has_topic(self, topic: str) -> bool:
        return bool(self._partitions_of(topic))

    def _rules_now(self, rules: TopicRules) -> TopicRules:
        found = self._partitions_of(rules.topic)
        partitions = found or list(range(self._job.partitions or 1))
        return rules_of(rules.topic, partitions, self._config_of(rules.topic))

    def _announced(
        self, place: TopicPartition, files: Sequence[StagedFile], now_ms: int
    ) -> AnnouncedPartition:
        config = self._config_of(place.topic)
        log = open_logs_of_topic(self._manager, place.topic).get(place.partition)
        adoption = SegmentAdoption.into(log, config)
        announced = []
        for staged in files:
            batches = self._opened(staged)
            file = staged
            if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
                file = stamp_append_time(batches, self._context.io, now_ms)
            announced.append(AnnouncedFile(file, adoption.adopt(file.size_bytes)))
        return AnnouncedPartition(
            place,
            0 if log is None else log.log_end_offset,
            0 if log is None else max(log.latest_epoch or 0, 0),
            tuple(announced),
        )

    def _opened(self, staged: StagedFile) -> StagedBatches:
        try:
            batches = StagedBatches(self._directory, staged)
            batches.ensure_complete()
        except SegmentVanishedError as error:
            reason = (
                f"staged file is not here, so {self._job.key} was not written: all tasks and the "
                "committer have to share the file system of the log directory, and nobody else may "
                "remove its files"
            )
            raise SegmentVanishedError(reason, error.path) from error
        return batches
