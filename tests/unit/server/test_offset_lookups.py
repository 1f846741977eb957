"""ListOffsets: positions that only later versions have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("version", "timestamp", "code"),
    [(6, -3, 35), (7, -3, 0), (8, -5, 35), (9, -5, 0), (10, -6, 35), (11, -6, 0), (11, -7, 35)],
)
def test_positions_of_later_versions_are_no_times(
    log_dir: Path, version: int, timestamp: int, code: int
) -> None:
    partition = {"partitionIndex": 0, "timestamp": timestamp}
    asked = {"topics": [{"name": "orders", "partitions": [partition]}]}
    with pylog.serve(log_dir) as server, RawClient(server.address) as client:
        (topic,) = client.ask("ListOffsets", version, asked)["topics"]
    assert topic["partitions"][0]["errorCode"] == code
