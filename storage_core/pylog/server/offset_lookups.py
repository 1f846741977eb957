"""ListOffsets and OffsetForLeaderEpoch: offsets by position, time and leader epoch.

Source: ReplicaManager.fetchOffset, UnifiedLog.fetchOffsetByTimestamp (Kafka 4.4); KIP-79, KIP-320,
KIP-734, KIP-405, KIP-1005, KIP-1023.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pylog.errors import LogStorageError
from pylog.lazy_modules import LazyModule
from pylog.model import NO_TIMESTAMP
from pylog.server.partition import PartitionError
from pylog.server.protocol import (
    CONSUMER_REPLICA_ID,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Errors,
    each_partition,
)

if TYPE_CHECKING:
    from pylog.reading import offset_resolution  # imports Arrow
    from pylog.server.partition import Partition
    from pylog.server.protocol import Request, RequestContext, Response
    from pylog.server.replica_manager import ReplicaManager
else:
    offset_resolution = LazyModule("pylog.reading.offset_resolution")

# What a ListOffsets request asks for instead of a timestamp.
_LATEST, _EARLIEST, _MAX_TIMESTAMP = -1, -2, -3
_EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -4, -5, -6
_NO_REMOTE_STORAGE = (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD)
_UNKNOWN_OFFSET = -1
_FIRST_VERSIONS = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 1 << 15


class OffsetLookups:
    """Answers both, in threads."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    async def handle_list_offsets(self, request: Request, context: RequestContext) -> Response:
        """Answer ListOffsets."""
        version = context.version
        return await self._replicas.in_thread(lambda: self._list_offsets(request, version))

    def _list_offsets(self, request: Request, version: int) -> Response:
        isolation = request["isolationLevel"]
        # A replica, or who looks at one, sees the log to its end.
        is_committed = isolation == READ_COMMITTED and request["replicaId"] == CONSUMER_REPLICA_ID
        if is_committed:
            self._ensure_walked(request)
        asked = Counter(
            (name, each["partitionIndex"]) for name, each in each_partition(request["topics"])
        )

        def answer(topic: str, partition: dict[str, Any]) -> Response:
            index, timestamp = partition["partitionIndex"], partition["timestamp"]
            if isolation not in (READ_UNCOMMITTED, READ_COMMITTED):
                return {"partitionIndex": index, "errorCode": Errors.UNKNOWN_SERVER_ERROR}
            if asked[topic, index] > 1:
                return {"partitionIndex": index, "errorCode": Errors.INVALID_REQUEST}
            if timestamp < 0 and version < _FIRST_VERSIONS.get(timestamp, _NEVER):
                return {"partitionIndex": index, "errorCode": Errors.UNSUPPORTED_VERSION}
            return self._list_offset(topic, partition, is_committed=is_committed)

        # Each once, as in a broker's map, and no topic without partitions.
        topics: dict[str, dict[int, dict[str, Any]]] = {}
        for name, each in each_partition(request["topics"]):
            topics.setdefault(name, {})[each["partitionIndex"]] = each
        return {
            "topics": [
                {"name": name, "partitions": [answer(name, each) for each in partitions.values()]}
                for name, partitions in topics.items()
            ]
        }

    def _ensure_walked(self, request: Request) -> None:
        """Raise `NotWalkedError` before anything is looked up: after a walk, all is asked again."""
        for name, each in each_partition(request["topics"]):
            with suppress(PartitionError, LogStorageError):
                self._replicas.partition(name, each["partitionIndex"]).find_last_stable_offset()

    def _list_offset(self, topic: str, asked: Request, *, is_committed: bool) -> Response:
        index = asked["partitionIndex"]
        try:
            partition = self._replicas.partition(topic, index, asked["currentLeaderEpoch"])
        except PartitionError as error:
            return {"partitionIndex": index, "errorCode": error.code}
        except LogStorageError:
            return {"partitionIndex": index, "errorCode": Errors.KAFKA_STORAGE_ERROR}
        try:
            timestamp, offset, epoch = _offset_for(
                partition, asked["timestamp"], is_committed=is_committed
            )
        except LogStorageError as error:
            return {"partitionIndex": index, "errorCode": self._replicas.code_of(error, partition)}
        return {
            "partitionIndex": index,
            "errorCode": Errors.NONE,
            "timestamp": timestamp,
            "offset": offset,
            "leaderEpoch": -1 if epoch is None else epoch,
        }

    async def handle_offset_for_leader_epoch(
        self, request: Request, context: RequestContext
    ) -> Response:
        """Answer OffsetForLeaderEpoch."""
        return await self._replicas.in_thread(lambda: self._offsets_for_leader_epoch(request))

    def _offsets_for_leader_epoch(self, request: Request) -> Response:
        return {
            "topics": [
                {
                    "topic": topic["topic"],
                    "partitions": [
                        self._offset_for_leader_epoch(topic["topic"], each)
                        for each in topic["partitions"]
                    ],
                }
                for topic in request["topics"]
            ]
        }

    def _offset_for_leader_epoch(self, topic: str, asked: Request) -> Response:
        index = asked["partition"]
        try:
            partition = self._replicas.partition(topic, index, asked["currentLeaderEpoch"])
            epoch, end_offset = partition.end_offset_for(asked["leaderEpoch"])
        except PartitionError as error:
            return {"partition": index, "errorCode": error.code}
        except LogStorageError:
            return {"partition": index, "errorCode": Errors.KAFKA_STORAGE_ERROR}
        return {
            "partition": index,
            "errorCode": Errors.NONE,
            "leaderEpoch": epoch,
            "endOffset": end_offset,
        }


def _offset_for(
    partition: Partition, timestamp: int, *, is_committed: bool
) -> tuple[int, int, int | None]:
    """Return timestamp, offset and leader epoch for what ListOffsets asks."""
    offsets = partition.known
    fetchable = offsets.high_watermark
    if is_committed:
        fetchable = partition.find_last_stable_offset()
    if timestamp == _LATEST:
        return NO_TIMESTAMP, fetchable, partition.leader_epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        start = offsets.log_start_offset
        return NO_TIMESTAMP, start, partition.epoch_for_offset(start)
    if timestamp in _NO_REMOTE_STORAGE:
        return NO_TIMESTAMP, _UNKNOWN_OFFSET, None
    view = partition.view
    found = (
        offset_resolution.find_max_timestamp(view)
        if timestamp == _MAX_TIMESTAMP
        else offset_resolution.find_offset_for_timestamp(view, timestamp)
    )
    if found is None or found.offset >= fetchable:
        return NO_TIMESTAMP, _UNKNOWN_OFFSET, None
    return found.timestamp, found.offset, partition.epoch_for_offset(found.offset)
