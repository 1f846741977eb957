"""Batches that are appended as they are: only a writable buffer is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.peers import PEERS, V2_BUILDERS
from tests.unit.log.owned_log import NOW_MS, OwnedLog, one_batch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def owned(tmp_path: Path) -> OwnedLog:
    return OwnedLog(tmp_path)


@pytest.mark.parametrize("peer", PEERS)
def test_a_batch_of_another_client_library_is_taken_as_it_is(owned: OwnedLog, peer: str) -> None:
    builder = V2_BUILDERS[peer](
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000,
    )
    for index in range(3):
        builder.append(index, NOW_MS + index, b"k", b"v%d" % index, [("h", b"x")])
    assert owned.log.append_as_leader(bytes(builder.build())).record_count == 3
    assert [(each.offset, each.timestamp, each.value) for each in owned.all_records()] == [
        (0, NOW_MS, b"v0"),
        (1, NOW_MS + 1, b"v1"),
        (2, NOW_MS + 2, b"v2"),
    ]


def test_the_callers_bytes_are_changed_only_in_a_writable_buffer(owned: OwnedLog) -> None:
    owned.append(b"a")
    data = one_batch(b"b")
    buffer = bytearray(data)
    owned.log.append_as_leader(data)
    owned.log.append_as_leader(buffer)
    assert data == one_batch(b"b")
    assert int.from_bytes(buffer[:8], "big") == 2
