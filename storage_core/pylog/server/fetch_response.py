"""A Fetch response while it is made: what has been read, and what may still be.

Source: ReplicaManager.readFromLog, FetchResponse.partitionResponse (Kafka 4.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.files.byte_source import LocalFile
from pylog.internal_topics.message_writer import FileRange
from pylog.record.batch_header import OFFSET_LENGTH
from pylog.server.protocol import Errors
from pylog.server.segment_proof import NotProvedError

if TYPE_CHECKING:
    from pylog.server.masked_records import MaskedRecords
    from pylog.server.partition import Partition, ReadLog
    from pylog.server.protocol import Request, Response

_UNKNOWN = (Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.UNKNOWN_TOPIC_ID)
_HAVE_LEADER = (Errors.FENCED_LEADER_EPOCH, Errors.NOT_LEADER_OR_FOLLOWER)  # KIP-951
TOPIC_ID_VERSION = 13
_SMALL_RANGE_BYTES = 1 << 13
_COPIED_BYTES = 1 << 20
_MOST_FILE_RANGES = 64
"""Each holds a file open until its client has taken it: what is more comes with the next fetch."""


class FetchResponse:
    """The batches that a fetch has read so far, and the bytes that it may still read.

    ``leader_id`` is for clients that expect to be told who leads, else None.
    """

    def __init__(
        self,
        *,
        is_committed: bool,
        rest_bytes: int,
        least_bytes: int,
        leader_id: int | None = None,
        is_of_replica: bool = False,
        masked: MaskedRecords | None = None,
    ) -> None:
        self.is_committed = is_committed
        self.is_of_replica = is_of_replica
        self._masked = masked
        self.names_leader = False
        self.rest_bytes = rest_bytes
        self.message: dict[str, Any] = {}
        self.next_reads: list[tuple[Partition, int, int]] = []
        self._least_bytes = least_bytes
        self._leader_id = leader_id
        self._read_bytes = 0
        self._has_news = False  # an error, or an epoch that diverges: the client is told at once
        self._partitions = 0
        self._copied_bytes = 0
        self._file_ranges = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been read: the first batch comes whole."""
        return self._read_bytes == 0

    @property
    def is_complete(self) -> bool:
        """Whether the response can be sent without waiting for more bytes."""
        return self._has_news or self._partitions == 0 or self._read_bytes >= self._least_bytes

    def error(self, index: int, code: Errors, leader_epoch: int | None = None) -> dict[str, Any]:
        """Return the response for a partition that cannot be read."""
        # At damage a client that asks again and again waits as at the end of the log.
        self._has_news = self._has_news or code is not Errors.CORRUPT_MESSAGE
        self._partitions += 1
        response: dict[str, Any] = {
            "partitionIndex": index,
            "errorCode": code,
            "highWatermark": -1,
            "records": b"",
        }
        if code in _UNKNOWN:
            response["abortedTransactions"] = []
        else:
            self.rest_bytes = max(0, self.rest_bytes)
        if code in _HAVE_LEADER and None not in (leader_epoch, self._leader_id):
            response["currentLeader"] = {"leaderId": self._leader_id, "leaderEpoch": leader_epoch}
            self.names_leader = True
        return response

    def partition(
        self,
        partition: Partition,
        asked: dict[str, Any],
        log: ReadLog,
        diverging: dict[str, int] | None,
    ) -> dict[str, Any]:
        """Return the response for a partition that has been read."""
        size_bytes = log.size_bytes
        if self._masked is not None and self._masked.covers(partition.topic_partition.topic):
            records: bytes | FileRange = b""
            if size_bytes:
                records = self._masked.masked(partition.topic_partition, self._copied(log))
                size_bytes = max(size_bytes, len(records))
        else:
            records = self._records(log)
        self._partitions += 1
        self._has_news = self._has_news or diverging is not None
        self._read_bytes += size_bytes
        self.rest_bytes = max(0, self.rest_bytes - size_bytes)
        if log.size_bytes and log.next_offset >= 0:
            self.next_reads.append((partition, log.next_offset, asked["partitionMaxBytes"]))
        offsets = partition.known
        stable = partition.last_stable_offset if self.is_committed else partition.told_stable_offset
        response: dict[str, Any] = {
            "partitionIndex": asked["partition"],
            "errorCode": Errors.NONE,
            "highWatermark": offsets.high_watermark,
            "lastStableOffset": -1 if stable is None else stable,
            "logStartOffset": offsets.log_start_offset,
            "records": records,
        }
        if self.is_committed and log.aborted is not None:
            response["abortedTransactions"] = [
                {"producerId": each.producer_id, "firstOffset": each.first_offset}
                for each in log.aborted
            ]
        if diverging is not None:
            response["divergingEpoch"] = diverging
        return response

    def _records(self, log: ReadLog) -> bytes | FileRange:
        if log.source is None or not log.size_bytes:
            return b""
        if log.base_offset is None and isinstance(log.source, LocalFile):
            if log.size_bytes < _SMALL_RANGE_BYTES and self._copied_bytes < _COPIED_BYTES:
                self._copied_bytes += log.size_bytes
                return log.source.read_at(log.position, log.size_bytes)
            self._file_ranges += 1
            if self._file_ranges == _MOST_FILE_RANGES:
                self.rest_bytes = 0
            return FileRange(log.source, log.position, log.size_bytes)
        return self._copied(log)

    @staticmethod
    def _copied(log: ReadLog) -> bytes:
        if log.source is None:
            return b""
        data = log.source.read_at(log.position, log.size_bytes)
        log.source.ensure_current()
        if log.base_offset is None:
            return data
        return log.base_offset.to_bytes(OFFSET_LENGTH) + data[OFFSET_LENGTH:]


def only_local(log: ReadLog) -> ReadLog:
    """Return what has been read if the event loop may send it: `NotProvedError` otherwise."""
    if log.source is not None and not isinstance(log.source, LocalFile):
        raise NotProvedError
    return log


def failed_response(request: Request, version: int) -> Response:
    """Return what a broker answers where it fails unexpectedly (FetchRequest.getErrorResponse)."""
    failed = {"errorCode": Errors.UNKNOWN_SERVER_ERROR, "highWatermark": -1, "records": b""}
    asked = () if version >= TOPIC_ID_VERSION else request["topics"]
    return {
        "errorCode": Errors.UNKNOWN_SERVER_ERROR,
        "responses": [
            {
                "topic": topic["topic"],
                "partitions": [
                    {"partitionIndex": each["partition"], "abortedTransactions": [], **failed}
                    for each in topic["partitions"]
                ],
            }
            for topic in asked
        ],
    }
