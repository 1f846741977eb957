"""DescribeLogDirs: the log directories and the sizes of the partitions in them.

Source: ReplicaManager.describeLogDirs (Kafka 4.4); KIP-113, KIP-827.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pylog.errors import LogStorageError
from pylog.locations import is_remote, printable_location
from pylog.server.protocol import Errors

if TYPE_CHECKING:
    from pylog.server.partition import Partition
    from pylog.server.protocol import RequestContext
    from pylog.server.replica_manager import ReplicaManager

_UNKNOWN_BYTES = -1


class LogDirs:
    """Answers DescribeLogDirs."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    async def handle_describe_log_dirs(
        self, request: dict[str, Any], context: RequestContext
    ) -> dict[str, Any]:
        """Answer DescribeLogDirs."""
        return await self._replicas.in_thread(lambda: self._describe(request["topics"]))

    def _describe(self, asked: list[dict[str, Any]] | None) -> dict[str, Any]:
        wanted = None
        if asked is not None:
            wanted = {(each["topic"], index) for each in asked for index in each["partitions"]}
        found: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for name, topic in self._replicas.topics.items():
            for index, partition in topic.partitions.items():
                topics = found.setdefault(partition.directory.log_directory, {})
                if wanted is None or (name, index) in wanted:
                    topics.setdefault(name, []).append(_described(index, partition))
        return {
            "results": [
                {
                    "errorCode": Errors.NONE,
                    "logDir": printable_location(directory),
                    "topics": [
                        {"name": name, "partitions": partitions}
                        for name, partitions in topics.items()
                    ],
                    **_space(directory),
                }
                for directory, topics in found.items()
            ]
        }


def _described(index: int, partition: Partition) -> dict[str, Any]:
    try:
        size = partition.view.size_bytes
    except LogStorageError:
        size = 0
    return {"partitionIndex": index, "partitionSize": size, "offsetLag": 0, "isFutureKey": False}


def _space(directory: str) -> dict[str, int]:
    if is_remote(directory):
        return {"totalBytes": _UNKNOWN_BYTES, "usableBytes": _UNKNOWN_BYTES}
    try:
        status = os.statvfs(directory)
    except OSError:
        return {"totalBytes": _UNKNOWN_BYTES, "usableBytes": _UNKNOWN_BYTES}
    return {
        "totalBytes": status.f_frsize * status.f_blocks,
        "usableBytes": status.f_frsize * status.f_bavail,
    }
