from __future__ import annotations

import pytest

from pylog.errors import InvalidRecordError
from pylog.record.byte_buffer import ByteBuffer


def test_what_is_appended_is_there_and_views_are_read_only() -> None:
    buffer = ByteBuffer(limit=1 << 20)
    buffer.append(b"abc")
    buffer.append(b"")
    buffer.append(b"d" * 100_000)
    assert buffer.length == 100_003
    assert bytes(buffer.view(0, 5)) == b"abcdd"
    assert buffer.view(0, 5).readonly


def test_growing_leaves_views_of_the_old_memory_alone() -> None:
    buffer = ByteBuffer(limit=1 << 20)
    buffer.append(b"abc")
    view = buffer.view(0, 3)
    buffer.append(b"x" * 500_000)
    assert bytes(view) == b"abc"
    assert bytes(buffer.view(0, 4)) == b"abcx"


def test_the_limit_counts_from_the_last_opened_batch() -> None:
    buffer = ByteBuffer(limit=10)
    buffer.append(b"1" * 10)
    with pytest.raises(InvalidRecordError, match="more than the limit of 10 bytes"):
        buffer.append(b"2")
    assert buffer.open_batch() == 10
    buffer.append(b"2" * 10)
    with pytest.raises(InvalidRecordError):
        buffer.reserve(1)


def test_clear_keeps_the_memory_and_forgets_the_content() -> None:
    buffer = ByteBuffer(limit=1 << 20)
    buffer.append(b"x" * 500_000)
    memory = buffer.memory
    buffer.clear()
    assert (buffer.length, buffer.room()) == (0, 1 << 20)
    assert buffer.memory is memory


def test_a_stream_may_fill_the_limit_and_not_exceed_it() -> None:
    buffer = ByteBuffer(limit=4)
    assert len(buffer.reserve_up_to(100)) == 5
    buffer.advance(4)
    assert len(buffer.reserve_up_to(100)) == 1
    buffer.advance(1)
    with pytest.raises(InvalidRecordError, match="limit of 4 bytes"):
        buffer.reserve_up_to(100)
