"""Replicas that are followed, without a server around them."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import TopicChoice
from pylog.server.messages import APIS
from pylog.server.protocol import RequestContext
from pylog.server.replica_manager import ReplicaManager, ServedLogs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTEXT = RequestContext(APIS["Fetch"], 12, "test", "127.0.0.1", "127.0.0.1", 1)


@contextmanager
def followed(
    *paths: Path, mode: ReadMode = ReadMode.FAILFAST, high_watermark: str = "log-end"
) -> Iterator[ReplicaManager]:
    """Yield the replicas; they look again where `refresh` says so."""
    replicas = ReplicaManager(
        ServedLogs(
            paths=paths,
            choice=TopicChoice.of(topics=None, assign=None, pattern=None),
            mode=mode,
            high_watermark=high_watermark,
            follows=True,
        )
    )
    try:
        yield replicas
    finally:
        replicas.close()


def fetched(
    replicas: ReplicaManager, offset: int, max_bytes: int = 1 << 20, isolation: int = 0
) -> Any:  # noqa: ANN401
    """Return what a fetch of ``orders-0`` gets."""
    partition = {
        "partition": 0,
        "fetchOffset": offset,
        "currentLeaderEpoch": -1,
        "lastFetchedEpoch": -1,
        "partitionMaxBytes": max_bytes,
    }
    topic = {"topic": "orders", "topicId": None, "partitions": [partition]}
    request = {
        "replicaId": -1,
        "replicaState": {"replicaId": -1},
        "isolationLevel": isolation,
        "maxBytes": 1 << 20,
        "minBytes": 1,
        "topics": [topic],
    }
    look = partial(replicas._fetch, request, CONTEXT, may_look=True)
    answer = asyncio.run(replicas.in_thread(look)).message
    return answer["responses"][0]["partitions"][0]


def content(answer: Any) -> bytes:  # noqa: ANN401
    """Return the records of a response."""
    records = answer["records"]
    if isinstance(records, bytes):
        return records
    data: bytes = records.file.read_at(records.position, records.size_bytes)
    return data
