"""The partitions that are served, and what Fetch gets of them.

Which directory serves a partition where several hold it: the rule of `pylog.reading.replicas`. Two
replicas of which neither is a part of the other are refused until the user chooses.

An answer that needs a look at files is made in a thread, all others on the event loop: what clients
read of a page cache costs a look-up in memory and a ``sendfile``.

Source: ReplicaManager, DelayedFetch, Partition (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    LogStorageError,
    OffsetOutOfRangeError,
    SegmentVanishedError,
    TooManyOpenFilesError,
)
from pylog.files.checkpoint_file import known_offset_checkpoint
from pylog.files.file_names import HIGH_WATERMARK_CHECKPOINT, PARTITION_METADATA
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.storage import change_mark
from pylog.locations import in_store, is_remote, join
from pylog.model import INTERNAL_TOPICS, IsolationLevel, TopicPartition
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.discovery import discover_all
from pylog.reading.followed_directory import FollowedDirectory
from pylog.reading.followed_partition import FollowedLog, mark_of_last
from pylog.reading.log_directory import LogDirectory, TopicChoice, ensure_known_topics
from pylog.reading.log_view import LogView
from pylog.reading.replicas import find_diverged, one_of_each
from pylog.server.fetch_response import (
    TOPIC_ID_VERSION,
    FetchResponse,
    failed_response,
    only_local,
)
from pylog.server.log_transactions import LogWalks, NotWalkedError
from pylog.server.masked_records import MaskedRecords
from pylog.server.partition import Partition, PartitionError, ProofCache, ReadLog, check_epoch
from pylog.server.protocol import NO_EPOCH, READ_COMMITTED, READ_UNCOMMITTED, Errors
from pylog.server.rate_limited_log import server_logger
from pylog.server.request_limits import LARGE_WAIT_MS, Seats
from pylog.server.segment_proof import NotProvedError

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from pylog.columnar.record_masking import MaskRule
    from pylog.reading.discovery import LogStartOffsets, PartitionDirectory
    from pylog.reading.pending_commit import PendingCommit
    from pylog.server.protocol import Request, RequestContext, Response

_Value = TypeVar("_Value")
_LOGGER = server_logger(__name__)
_LOOK_UP_THREADS = 2
_FETCH_THREADS = 4
_AHEAD_THREADS = 2
_MOST_LOOKS = 16
_LOOK_SECONDS = 0.2
_FAILED_SECONDS = 5
"""After how long a partition that cannot be followed is looked at again where nothing changes."""
_MOST_LOGGED = 10_000
_MOST_PARTITIONS = 100_000
_MOST_PROVED_AHEAD = 100
"""Partitions of a response: its next ones are looked at when they are asked for."""
_MAX_FETCH_BYTES = 55 << 20  # fetch.max.bytes of a broker
_MAX_SLOW_BYTES = 4 << 20  # where a response is read, or checked, each time
_LONGEST_WAIT_MS = 300_000
_LEADER_VERSION = 16
_WHOLE_SESSION_EPOCHS = (0, -1)
_NAMESPACE = uuid.UUID("3b0a1b7e-5f0e-4d0e-9f0a-70796c6f6700")
"""Of the ids of topics that brokers before 2.8 made without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLogs:
    """What is served, and how; see `pylog.serve`."""

    paths: tuple[str | os.PathLike[str], ...]
    choice: TopicChoice
    mode: ReadMode = ReadMode.FAILFAST
    include_stray: bool = False
    replica: str | int | os.PathLike[str] | None = None
    high_watermark: str = "log-end"
    follows: bool = False
    checks_each_time: bool = False
    mask_rules: tuple[MaskRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is served, with its partitions in their order."""

    name: str
    topic_id: uuid.UUID
    partitions: dict[int, Partition] = field(default_factory=dict)

    @property
    def partition_count(self) -> int:
        """The number after its highest partition."""
        return next(reversed(self.partitions)) + 1

    @property
    def is_internal(self) -> bool:
        """Whether Kafka calls the topic internal."""
        return self.name in INTERNAL_TOPICS


class _FailedLook(NamedTuple):
    """A partition that cannot be followed, when that was, and what might change it."""

    log: FollowedLog
    seconds: float
    of_directory: object
    of_last_file: object
    starts: LogStartOffsets
    pending: PendingCommit


class _FollowedLogs(FollowedDirectory):
    """Looks at all partitions, whatever is wrong with one of them."""

    _failed: Mapping[TopicPartition, _FailedLook] = MappingProxyType({})

    def refresh(self) -> dict[TopicPartition, FollowedLog]:
        """Return every partition as it is now."""
        logs = super().refresh()
        self._failed = {each: it for each, it in self._failed.items() if each in logs}
        return logs

    def _look(
        self, directory: PartitionDirectory, starts: LogStartOffsets, pending: PendingCommit
    ) -> FollowedLog:
        partition = directory.topic_partition
        failed = self._failed.get(partition)
        of_directory = change_mark(directory.path)
        if failed is not None and _is_as_it_was(failed, of_directory, starts, pending):
            return failed.log
        try:
            return super()._look(directory, starts, pending)
        except LogStorageError:
            damage = DamageReport() if self._skips_damage else None
            view = LogView(directory, starts, damage, pending)
            of_last_file = None if view.unreadable else mark_of_last(view)
            log = FollowedLog(view, 0, 0, None)
            found = _FailedLook(log, time.monotonic(), of_directory, of_last_file, starts, pending)
            self._failed = {**self._failed, partition: found}
            return log


class ReplicaManager:
    """Serves partitions. Its state is replaced as a whole, so that threads may look at it."""

    def __init__(self, served: ServedLogs, max_files: int = 64) -> None:
        self._served = served
        self._damage = DamageReport() if served.mode.skips_damage else None
        self._proofs = ProofCache(max_files, each_time=served.checks_each_time)
        # Look-ups do not wait for fetches, which may take long, nor these for what is proved ahead.
        self._look_ups = ThreadPoolExecutor(_LOOK_UP_THREADS, thread_name_prefix="pylog-serve")
        self._fetches = ThreadPoolExecutor(_FETCH_THREADS, thread_name_prefix="pylog-serve-fetch")
        self._ahead = ThreadPoolExecutor(_AHEAD_THREADS, thread_name_prefix="pylog-serve-ahead")
        self._seats = Seats(_FETCH_THREADS)
        self._walks = LogWalks()
        self._logged: set[tuple[object, object]] = set()
        self._proved_ahead: set[tuple[TopicPartition, int]] = set()
        self._growth: asyncio.Future[None] | None = None
        self._masked = MaskedRecords(served.mask_rules)
        is_slow = served.checks_each_time or bool(served.mask_rules)
        is_slow |= any(is_remote(str(path)) for path in served.paths)
        self._max_fetch_bytes = _MAX_SLOW_BYTES if is_slow else _MAX_FETCH_BYTES
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[uuid.UUID, Topic] = {}
        self._followed: _FollowedLogs | None = None
        self._views: dict[TopicPartition, LogView] = {}  # as the last look has shown them
        self._told: dict[TopicPartition, tuple[str | None, int]] = {}  # topic id and leader epoch
        self._unserved: frozenset[str] | None = None
        self.node_id = -1  # until a `MetadataCache` knows whose directories these are
        if served.replica is None and len(served.paths) > 1:
            _ensure_not_diverged(served)
        if served.follows:
            self._followed = _FollowedLogs(
                served.paths,
                served.choice,
                isolation=IsolationLevel.READ_UNCOMMITTED,
                mode=served.mode,
                include_stray=served.include_stray,
                replica=served.replica,
            )
            self.refresh()
        else:
            self._show(self._found())

    def _found(self) -> dict[TopicPartition, Partition]:
        """Return what is served of directories that are not followed; lists no partition."""
        served = self._served
        directories = one_of_each(
            discover_all(in_store(served.paths, None, None)),
            include_stray=served.include_stray,
            replica=served.replica,
        )
        everything = LogDirectory(directories, include_stray=served.include_stray)
        if served.choice.topics is not None:
            known = {each.topic_partition.topic for each in directories}
            ensure_known_topics(sorted(served.choice.topics), known)
        return {
            each.topic_partition: self._partition(
                each, partial(everything.__getitem__, each.topic_partition)
            )
            for each in directories
            if each.is_live(include_stray=served.include_stray)
            and each in served.choice
            and self._has_possible_number(each.topic_partition)
        }

    def _has_possible_number(self, topic_partition: TopicPartition) -> bool:
        """Whether clients can be told of a partition: of all numbers below it, too."""
        if topic_partition.partition < _MOST_PARTITIONS:
            return True
        reason = f"its number is {_MOST_PARTITIONS} or more; is it a copy with a date in its name?"
        error = LogDirectoryError(f"partition {topic_partition} is not served: {reason}")
        self._log_once(error, "%s", error)
        return False

    def _partition(
        self,
        directory: PartitionDirectory,
        open_view: Callable[[], LogView],
        before: Partition | None = None,
        least_epoch: int = 0,
    ) -> Partition:
        return Partition(
            directory,
            lambda: self._as_served(open_view()),
            self._proofs,
            high_watermark=self._watermark(directory),
            transactions=None if before is None else before.transactions,
            least_epoch=least_epoch,
        )

    def _watermark(self, directory: PartitionDirectory) -> int | None:
        if self._served.high_watermark != "checkpoint":
            return None
        path = join(directory.log_directory, HIGH_WATERMARK_CHECKPOINT)
        return known_offset_checkpoint(path).get(directory.topic_partition, 0)

    def _as_served(self, view: LogView) -> LogView:
        if self._damage is None:
            return view
        # The one report is logged.
        return view.with_damage(self._damage)

    def _show(self, partitions: Mapping[TopicPartition, Partition]) -> None:
        topics: dict[str, Topic] = {}
        for each, partition in sorted(partitions.items()):
            topic = topics.get(each.topic)
            if topic is None:
                topic = topics[each.topic] = Topic(each.topic, _topic_id(partition.directory))
            topic.partitions[each.partition] = partition
        self.topics = topics
        self.topics_by_id = {each.topic_id: each for each in topics.values()}

    def refresh(self) -> bool:
        """Look again at a directory that is followed; return whether anything has changed."""
        if self._followed is None:
            return False
        logs = {
            each: log
            for each, log in self._followed.refresh().items()
            if self._has_possible_number(each)
        }
        views, self._views = self._views, {}  # after an error nothing is known any more
        before = self._by_partition()
        now: dict[TopicPartition, Partition] = {}
        for each, log in logs.items():
            known = before.get(each) if each in views else None
            if known is not None and not _goes_on(known, log):
                known = None
            watermark = self._watermark(log.view.directory)
            is_same = known is not None and known.checkpointed_high_watermark == watermark
            if known is not None and is_same and views[each] is log.view:
                now[each] = known
                continue
            now[each] = self._partition(
                log.view.directory, partial(_itself, log.view), known, self._least_epoch(each, log)
            )
            self._told[each] = log.topic_id, now[each].leader_epoch
        has_changed = now != before
        if has_changed:
            self._show(now)
            self._proofs.keep_only(
                lambda key: key.topic_partition in now and now[key.topic_partition].holds(key)
            )
        self._views = {each: log.view for each, log in logs.items()}
        return has_changed

    def _least_epoch(self, topic_partition: TopicPartition, log: FollowedLog) -> int:
        """Return the leader epoch that clients have been told: they would ignore a lower one.

        A follower forgets the latest one where it truncates; a topic that is made anew begins anew.
        """
        topic_id, epoch = self._told.get(topic_partition, (None, 0))
        is_another = None not in (topic_id, log.topic_id) and topic_id != log.topic_id
        return 0 if is_another else epoch

    def _by_partition(self) -> dict[TopicPartition, Partition]:
        return {
            each.topic_partition: each
            for topic in self.topics.values()
            for each in topic.partitions.values()
        }

    async def follow(self) -> None:
        """Look again and again, and let waiting fetches continue when something has changed."""
        if self._followed is None:
            await asyncio.Event().wait()  # until it is cancelled
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                has_changed = await self.in_thread(self.refresh)
            except LogStorageError as error:
                self._log_once(error, "the directory cannot be looked at: %s", error)
                continue
            if has_changed and self._growth is not None:
                self._growth.set_result(None)
                self._growth = None

    async def in_thread(self, function: Callable[[], _Value]) -> _Value:
        """Run a function that reads files in a thread; return its result.

        It begins anew after a walk over a log, which keeps no thread from answering other clients.
        """
        loop = asyncio.get_running_loop()
        return await self._walked(lambda: loop.run_in_executor(self._look_ups, function))

    async def _walked(self, run: Callable[[], Awaitable[_Value]]) -> _Value:
        while True:
            try:
                return await run()
            except NotWalkedError as needed:
                walk = asyncio.wrap_future(self._walks.start(needed))
            await asyncio.shield(walk)  # others wait for it, too, when this client goes

    async def _fetch_in_thread(self, request: Request, context: RequestContext) -> FetchResponse:
        fetch = partial(self._fetch, request, context, may_look=True)
        async with self._seats.hold(is_known=context.has_fetched):
            return await asyncio.get_running_loop().run_in_executor(self._fetches, fetch)

    def close(self) -> None:
        """End the threads."""
        for each in (self._look_ups, self._fetches, self._ahead):
            each.shutdown(wait=True, cancel_futures=True)
        self._walks.close()

    def find(self, topic: str, partition: int) -> Partition | None:
        """Return a partition that is served."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def is_unserved(self, topic: str) -> bool:
        """Whether an internal topic is there, and not served; the log says how it would be."""
        if topic not in INTERNAL_TOPICS or topic in self.topics:
            return False
        if self._unserved is None:
            found = discover_all(in_store(self._served.paths, None, None))
            self._unserved = frozenset(each.topic_partition.topic for each in found)
        if topic not in self._unserved:
            return False
        if (LogDirectoryError, topic) not in self._logged:
            self._logged.add((LogDirectoryError, topic))
            _LOGGER.warning(
                "a client asks for %s, an internal topic that is served only if you name it: "
                "--topic %s, and a --topic for each other one",
                topic,
                topic,
            )
        return True

    def partition(
        self, topic: str, partition: int, current_leader_epoch: int = NO_EPOCH
    ) -> Partition:
        """Return a partition that is served, with its offsets; in a thread."""
        found = self.find(topic, partition)
        if found is None:
            raise PartitionError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        check_epoch(found, current_leader_epoch)
        found.load()
        return found

    # Fetch

    async def handle_fetch(self, request: Request, context: RequestContext) -> Response:
        """Answer Fetch, once there are enough bytes, or after its longest wait."""
        if request["sessionEpoch"] not in _WHOLE_SESSION_EPOCHS:  # there are no sessions
            return {"errorCode": Errors.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
        if request["isolationLevel"] not in (READ_UNCOMMITTED, READ_COMMITTED):
            return failed_response(request, context.version)
        loop = asyncio.get_running_loop()
        longest = LARGE_WAIT_MS if context.is_large else _LONGEST_WAIT_MS
        deadline = loop.time() + min(max(request["maxWaitMs"], 0), longest) / 1000
        while True:
            # Before the look, so that what comes after it is noticed.
            growth = self._growth_future()
            try:
                if context.is_large:
                    raise NotProvedError  # noqa: TRY301 - it would keep the event loop
                response = self._fetch(request, context, may_look=False)
            except NotProvedError:
                response = await self._walked(partial(self._fetch_in_thread, request, context))
            rest = deadline - loop.time()
            if response.is_complete or rest <= 0:
                self._prove_ahead(response)
                return response.message
            if self._followed is None:
                await asyncio.sleep(rest)
                return response.message
            await asyncio.wait([growth], timeout=rest)

    def _growth_future(self) -> asyncio.Future[None]:
        if self._growth is None:
            self._growth = asyncio.get_running_loop().create_future()
        return self._growth

    def _fetch(self, request: Request, context: RequestContext, *, may_look: bool) -> FetchResponse:
        """Return the response as things are; `NotProvedError` if it may not look at files."""
        reading = FetchResponse(
            is_committed=request["isolationLevel"] == READ_COMMITTED,
            rest_bytes=min(request["maxBytes"], self._max_fetch_bytes),
            least_bytes=request["minBytes"],
            leader_id=self.node_id if context.version >= _LEADER_VERSION else None,
            is_of_replica=max(request["replicaId"], request["replicaState"]["replicaId"]) >= 0,
            masked=self._masked,
        )
        has_ids = context.version >= TOPIC_ID_VERSION
        key = "topicId" if has_ids else "topic"
        # As a broker, which keeps them in a map: each once, where it comes first, as it comes last.
        last = {
            (topic[key], each["partition"]): each
            for topic in request["topics"]
            for each in topic["partitions"]
        }
        responses = []
        for asked in request["topics"]:
            topic = (
                self.topics_by_id.get(asked["topicId"])
                if has_ids
                else self.topics.get(asked["topic"])
            )
            unknown = Errors.UNKNOWN_TOPIC_ID if has_ids else Errors.UNKNOWN_TOPIC_OR_PARTITION
            partitions = [
                self._fetch_partition(
                    topic, last.pop(place), reading, may_look=may_look, unknown=unknown
                )
                for each in asked["partitions"]
                if (place := (asked[key], each["partition"])) in last
            ]
            responses.append(
                {"topic": asked["topic"], "topicId": asked["topicId"], "partitions": partitions}
            )
        reading.message = {"responses": responses}
        if reading.names_leader and not reading.is_of_replica:
            node = {"nodeId": self.node_id, "host": context.host, "port": context.port}
            reading.message["nodeEndpoints"] = [{**node, "rack": None}]
        return reading

    def _fetch_partition(
        self,
        topic: Topic | None,
        asked: Request,
        reading: FetchResponse,
        *,
        may_look: bool,
        unknown: Errors,
    ) -> Response:
        index = asked["partition"]
        if topic is None:
            return reading.error(index, unknown)
        partition = topic.partitions.get(index)
        if partition is None:
            return reading.error(index, Errors.UNKNOWN_TOPIC_OR_PARTITION)
        is_known = partition.is_loaded if reading.is_committed else partition.is_told
        if not may_look and not is_known:
            raise NotProvedError
        try:
            if may_look:
                partition.load()
            if not is_known and not reading.is_committed:
                partition.find_told_stable_offset()
            _ensure_leader(partition, asked, reading)
            diverging = _diverging_epoch(partition, asked)
            log = ReadLog(None, 0, 0)
            if diverging is None:
                log = self._read(partition, asked, reading, may_look=may_look)
            return reading.partition(partition, asked, log, diverging)
        except PartitionError as error:
            return reading.error(index, error.code, partition.leader_epoch)
        except LogStorageError as error:
            return reading.error(index, self.code_of(error, partition))

    def _read(
        self,
        partition: Partition,
        asked: Request,
        reading: FetchResponse,
        *,
        may_look: bool,
    ) -> ReadLog:
        offset, is_committed = asked["fetchOffset"], reading.is_committed
        max_bytes = min(asked["partitionMaxBytes"], reading.rest_bytes)
        is_fresh = False
        if not may_look and self._masked.covers(partition.topic_partition.topic):
            raise NotProvedError  # batches are rebuilt in a thread
        for _ in range(_MOST_LOOKS):
            try:
                found = partition.read(
                    offset,
                    max_bytes,
                    is_committed=is_committed,
                    whole_batch=reading.is_empty,
                    is_fresh=is_fresh,
                )
            except NotProvedError:
                if not may_look:
                    raise
                partition.prove(offset, max_bytes, is_committed=is_committed)
                is_fresh = True
                continue
            # An object store is read, and copied.
            return found if may_look else only_local(found)
        reason = "files change faster than they can be checked"
        raise SegmentVanishedError(reason, partition.directory.path)

    def _prove_ahead(self, response: FetchResponse) -> None:
        """Have the bytes proved that a client will ask for next."""
        if self._served.checks_each_time:
            return
        for partition, offset, asked_bytes in response.next_reads[:_MOST_PROVED_AHEAD]:
            max_bytes = min(asked_bytes, _MAX_FETCH_BYTES)
            key = partition.topic_partition, offset
            if key in self._proved_ahead:
                continue
            try:
                partition.read(
                    offset, max_bytes, is_committed=response.is_committed, whole_batch=True
                )
            except NotProvedError:
                self._proved_ahead.add(key)
                self._ahead.submit(
                    self._prove_quietly, partition, offset, max_bytes, response.is_committed
                )
            except LogStorageError:
                continue  # the client that reads on is told

    def _prove_quietly(
        self,
        partition: Partition,
        offset: int,
        max_bytes: int,
        is_committed: bool,  # noqa: FBT001
    ) -> None:
        try:
            partition.prove(offset, max_bytes, is_committed=is_committed)
        except NotWalkedError as needed:
            self._walks.start(needed)
        except LogStorageError:
            return  # the client that reads on is told
        finally:
            self._proved_ahead.discard((partition.topic_partition, offset))

    def code_of(self, error: LogStorageError, partition: Partition) -> Errors:
        """Return the error code for an error, and log what is damaged, once."""
        if isinstance(error, OffsetOutOfRangeError):
            return Errors.OFFSET_OUT_OF_RANGE
        if isinstance(error, SegmentVanishedError) or self._is_on_its_way(partition):
            self._log_once(error, "%s: %s", partition.topic_partition, error)
            self._look_anew(partition)
            return Errors.KAFKA_STORAGE_ERROR  # a client asks again
        if isinstance(error, TooManyOpenFilesError):
            self._log_once(error, "%s: %s", partition.topic_partition, error)
            return Errors.KAFKA_STORAGE_ERROR
        self._log_once(
            error,
            "%s: clients stop here: %s; serve it with --mode DROPMALFORMED to skip the damage",
            partition.topic_partition,
            error,
        )
        # Clients repeat what a disk could not do; of a record that is corrupt they tell the user.
        return Errors.CORRUPT_MESSAGE

    def _is_on_its_way(self, partition: Partition) -> bool:
        """Whether a partition could not be listed since a broker moves or deletes it."""
        if partition.view.unreadable is None:
            return False
        if partition.view.refreshed().unreadable is None:
            return True
        return self._followed is not None and partition.directory.was_deleted()

    def _look_anew(self, partition: Partition) -> None:
        """Have the next request look at a partition whose files are not those of its view."""
        topic = self.topics.get(partition.topic_partition.topic)
        number = partition.topic_partition.partition
        if topic is None or topic.partitions.get(number) is not partition:
            return  # somebody else has had it done
        self._proofs.forget(partition.topic_partition)
        topic.partitions[number] = self._partition(
            partition.directory.now(),
            partition.view.refreshed,
            least_epoch=partition.epochs[-1].epoch if partition.epochs else 0,
        )

    def _log_once(self, error: LogStorageError, message: str, *arguments: object) -> None:
        key = type(error), str(error)
        if key not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(key)
            _LOGGER.error(message, *arguments)


def _is_as_it_was(
    failed: _FailedLook, of_directory: object, starts: LogStartOffsets, pending: PendingCommit
) -> bool:
    """Whether another look would fail for the same reason, as far as can be told."""
    view = failed.log.view
    return (
        None not in (of_directory, failed.of_last_file)
        and failed.of_directory == of_directory
        and failed.of_last_file == mark_of_last(view)
        and failed.starts is starts
        and failed.pending is pending
        and time.monotonic() - failed.seconds < _FAILED_SECONDS
    )


def _goes_on(partition: Partition, log: FollowedLog) -> bool:
    """Whether a log that is followed has all that the partition had, and maybe more."""
    return log.rewritten_below is None and partition.directory.path == log.view.directory.path


def _ensure_leader(partition: Partition, asked: Request, reading: FetchResponse) -> None:
    """Raise `PartitionError` if the client takes another one for the leader, or itself for more."""
    if asked["currentLeaderEpoch"] >= 0:
        check_epoch(partition, asked["currentLeaderEpoch"])
    if reading.is_of_replica:  # nobody is a replica of what is here
        raise PartitionError(Errors.NOT_LEADER_OR_FOLLOWER)


def _diverging_epoch(partition: Partition, asked: Request) -> dict[str, int] | None:
    """Return where the log that the client has read parts from this one; None if it does not."""
    last_fetched = asked["lastFetchedEpoch"]
    if last_fetched < 0:
        return None
    epoch, end_offset = partition.end_offset_for(last_fetched)
    if epoch < 0 or end_offset < 0:
        raise PartitionError(Errors.OFFSET_OUT_OF_RANGE)
    if epoch < last_fetched or end_offset < asked["fetchOffset"]:
        return {"epoch": epoch, "endOffset": end_offset}
    return None


def _itself(view: LogView) -> LogView:
    return view


def _topic_id(directory: PartitionDirectory) -> uuid.UUID:
    """Return the topic id; one made of the name where there is none, or it cannot be read."""
    try:
        return read_partition_metadata(join(directory.path, PARTITION_METADATA)).topic_id
    except (CorruptCheckpointError, LogDirectoryError, SegmentVanishedError):
        return uuid.uuid5(_NAMESPACE, directory.topic_partition.topic)


def _ensure_not_diverged(served: ServedLogs) -> None:
    """Raise `LogDirectoryError` if a partition that is served has replicas that have diverged."""
    chosen: Iterable[PartitionDirectory] = (
        each for each in discover_all(served.paths) if each in served.choice and not each.state
    )
    diverged = find_diverged(chosen)
    if diverged is not None:
        one, other = diverged
        reason = (
            f"the replica of {one.topic_partition} here has other records than the one in "
            f"{other.path}; choose whose to serve with --replica"
        )
        raise LogDirectoryError(reason, one.path)
