"""A Fetch response holds each partition once, and no session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.raw_client import RawClient
from tests.unit.server.fetches import write

if TYPE_CHECKING:
    from pathlib import Path


OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, NO_SESSION = 1, 2, 70
UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST = 3, 42


def test_sessions_of_fetches_are_not_kept(log_dir: Path) -> None:
    with pylog.serve(log_dir) as server, RawClient(server.address) as client:
        for session_id, epoch, code in (
            *((0, 0, 0), (0, -1, 0), (5, 0, 0), (5, -1, 0)),  # all partitions are named
            *((0, 1, NO_SESSION), (5, 1, NO_SESSION), (5, -2, NO_SESSION)),
        ):
            asked = {"maxWaitMs": 0, "sessionId": session_id, "sessionEpoch": epoch}
            answer = client.ask("Fetch", 12, asked)
            assert (answer["errorCode"], answer["sessionId"]) == (code, 0)


def test_a_partition_that_is_named_again_and_again_is_fetched_once_as_it_is_named_last(
    log_dir: Path,
) -> None:
    """A broker keeps the partitions of a Fetch in a map."""
    write(log_dir, 2)
    partitions = [
        {"partition": index, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
        for index, offset in ((0, 0), (1, 0), (0, 5))
    ]
    topics = [{"topic": "orders", "partitions": partitions}] * 2
    with pylog.serve(log_dir) as server, RawClient(server.address) as client:
        request = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "topics": topics}
        responses = client.ask("Fetch", 12, request)["responses"]
    first, second = (each for topic in responses for each in topic["partitions"])
    assert (first["partitionIndex"], first["records"][:8]) == (0, (5).to_bytes(8))
    assert (second["partitionIndex"], second["errorCode"]) == (1, UNKNOWN_TOPIC_OR_PARTITION)
