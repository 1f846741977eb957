"""What clients of a server with rules for masking get: records as the rules have them."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import COMMIT, Stored, batch_v2, joined, marker, message, wrapper
from tests.support.log_files import write_partition
from tests.support.served_clients import READERS, Line, Wanted
from tests.unit.server.test_masked_records import masking, records

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.served_clients import Reader

__all__ = ["masking"]

Found = list[tuple[int, dict[str, object], dict[str, bytes]]]


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Reader:
    return READERS[request.param]


def read(
    reader: Reader, server: pylog.results.BrokerServer, end: int, isolation: str, topic: str
) -> Found:
    lines: list[Line] = []
    reader(server.address, Wanted(topic, 0, 0, end), isolation, lines)
    return [
        (
            each["offset"],
            json.loads(b64decode(each["value"])),
            {name: b64decode(value) for name, value in each["headers"]},
        )
        for each in lines
    ]


def masked(*offsets: int) -> Found:
    return [(at, {"email": "***", "n": at}, {"agent": b"?", "other": b"x"}) for at in offsets]


def test_a_consumer_gets_masked_records_at_the_same_offsets(
    tmp_path: Path, masking: pylog.results.RecordMasking, reader: Reader
) -> None:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    batches = [
        batch_v2(records(10 * at, 10), codec=codec, leader_epoch=3)
        for at, codec in enumerate(codecs)
    ]
    path = write_partition(tmp_path / "logs", {0: batches[:2], 20: batches[2:]})
    with pylog.serve(tmp_path / "logs", masking=masking) as server:
        found = read(reader, server, 50, "read_uncommitted", "orders")
    assert found == masked(*range(50))
    stored = b"".join(each.read_bytes() for each in sorted(path.glob("*.log")))
    assert stored == joined(batches)


def test_transactions_end_as_they_did(
    tmp_path: Path, masking: pylog.results.RecordMasking, reader: Reader
) -> None:
    batches = [
        *(
            batch_v2(
                records(3 * at, 3),
                producer_id=at,
                producer_epoch=0,
                base_sequence=0,
                is_transactional=True,
            )
            for at in (0, 1)
        ),
        *(marker(6, COMMIT, producer_id=0), marker(7, 0, producer_id=1)),
        batch_v2(records(8, 2)),
    ]
    write_partition(tmp_path / "logs", {0: batches})
    with pylog.serve(tmp_path / "logs", masking=masking) as server:
        found = read(reader, server, 10, "read_committed", "orders")
    assert found == masked(0, 1, 2, 8, 9)


def test_old_messages_and_other_topics(
    tmp_path: Path, masking: pylog.results.RecordMasking, reader: Reader
) -> None:
    plain = [Stored(*each[:4]) for each in records(0, 6)]
    old = [message(each, magic=1) for each in plain[:2]]
    write_partition(tmp_path / "logs", {0: [*old, wrapper(plain[2:], magic=1, codec="gzip")]})
    write_partition(tmp_path / "logs", {0: [batch_v2(records(0, 2))]}, name="users-0")
    with pylog.serve(tmp_path / "logs", masking=masking) as server:
        found = read(reader, server, 6, "read_uncommitted", "orders")
        users = read(reader, server, 2, "read_uncommitted", "users")
    assert found == [(*each[:2], {}) for each in masked(*range(6))]
    assert [each[1]["email"] for each in users] == ["ann@0", "ann@1"]
    assert [each[2] for each in users] == [{"agent": b"?", "other": b"x"}] * 2
