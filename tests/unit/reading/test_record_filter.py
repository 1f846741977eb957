"""What a `RecordFilter` decides by headers alone."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pylog
from pylog.reading import filtered_decode
from pylog.reading.filtered_decode import candidate_batches
from pylog.reading.record_filter import required_text
from pylog.record.batch_scan import BatchHeaders, find_batches
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    crc32c,
    message,
    message_bytes,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.log_files import write_partition
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from pathlib import Path

WHOLE_INSTANT = dt.datetime.fromtimestamp(1_700_000_000, dt.UTC)
INSTANT = WHOLE_INSTANT.replace(microsecond=500)


def headers_of(*entries: bytes) -> BatchHeaders:
    return find_batches(as_buffer(b"".join(entries))).headers


STAMPED = headers_of(
    batch_v2([Stored(0, 5_000, None, b"v")]).data, batch_v2([Stored(1, 9_000, None, b"v")]).data
)


@pytest.mark.parametrize(
    ("latest", "disorder", "is_past"),
    [
        (None, None, False),
        (None, 10, False),
        (1_000, None, False),
        (8_999, 0, True),
        (9_000, 0, False),
        (8_000, 999, True),
        (8_000, 1_000, False),
    ],
)
def test_reading_ends_only_where_both_bounds_say_so(
    latest: int | None, disorder: int | None, *, is_past: bool
) -> None:
    where = pylog.RecordFilter(max_timestamp=latest, timestamp_disorder=disorder)
    assert filtered_decode.is_past(where, STAMPED) is is_past


@pytest.mark.parametrize(
    ("lowest", "highest", "clipped"),
    [
        (None, None, (5, 10)),
        (2, 30, (5, 10)),
        (7, None, (7, 10)),
        (None, 7, (5, 8)),
        (7, 7, (7, 8)),
        (12, None, (12, 12)),
        (None, 3, (5, 5)),
    ],
)
def test_offsets_narrow_the_range_that_is_read_and_never_widen_it(
    lowest: int | None, highest: int | None, clipped: tuple[int, int]
) -> None:
    where = pylog.RecordFilter(min_offset=lowest, max_offset=highest)
    assert where.clip(5, 10) == clipped


def test_a_v0_wrapper_may_hold_messages_with_timestamps() -> None:
    stamped = message_bytes(1, None, b"v", magic=1, timestamp=2_000)
    packed = wrapper_of(compress("gzip", stamped), offset=1, magic=0, codec="gzip")
    plain = message(Stored(0, -1, None, b"v"), magic=0).data
    where = pylog.RecordFilter(min_timestamp=2_000)
    assert candidate_batches(where, headers_of(plain, packed)).tolist() == [False, True]


def test_a_v1_wrapper_with_append_time_may_hold_messages_without_timestamps() -> None:
    old = message_bytes(0, b"k", b"v", magic=0)
    packed = wrapper_of(compress("gzip", old), offset=0, magic=1, codec="gzip", append_time=5_000)
    plain = message_bytes(1, b"k", b"v", magic=1, timestamp=5_000, attributes=0x08)
    where = pylog.RecordFilter(max_timestamp=4_000)
    assert candidate_batches(where, headers_of(packed, plain)).tolist() == [True, False]


def test_two_filters_together_let_pass_what_both_let_pass() -> None:
    one = pylog.RecordFilter(
        topics=frozenset({"a", "b"}), min_offset=3, max_offset=9, timestamp_disorder=50
    )
    other = pylog.RecordFilter(
        topics=frozenset({"b", "c"}),
        partitions=frozenset({0}),
        min_offset=5,
        max_offset=20,
        keys=frozenset({b"k"}),
        timestamp_disorder=10,
    )
    both = pylog.RecordFilter(
        topics=frozenset({"b"}),
        partitions=frozenset({0}),
        min_offset=5,
        max_offset=9,
        keys=frozenset({b"k"}),
        timestamp_disorder=10,
    )
    assert one & other == both
    assert other & one == both
    assert one & pylog.RecordFilter() == one


def test_an_empty_set_stays_empty_and_lets_nothing_pass() -> None:
    none = pylog.RecordFilter(topics=frozenset())
    assert none & pylog.RecordFilter(topics=frozenset({"a"})) == none
    assert not none.covers(pylog.TopicPartition("a", 0))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"topics": "orders"}, {"topics": frozenset({"orders"})}),
        ({"topics": ["a", "b"]}, {"topics": frozenset({"a", "b"})}),
        ({"partitions": 3}, {"partitions": frozenset({3})}),
        ({"keys": b"user-80"}, {"keys": frozenset({b"user-80"})}),
        ({"keys": [b"a", b"b"]}, {"keys": frozenset({b"a", b"b"})}),
        ({"min_timestamp": pylog.Timestamp(5)}, {"min_timestamp": 5}),
        ({"min_timestamp": INSTANT}, {"min_timestamp": 1_700_000_000_001}),
        ({"max_timestamp": INSTANT}, {"max_timestamp": 1_700_000_000_000}),
        ({"max_timestamp": WHOLE_INSTANT}, {"max_timestamp": 1_700_000_000_000}),
        ({"min_offset": np.int64(7)}, {"min_offset": 7}),
    ],
)
def test_one_value_is_taken_for_several_and_an_instant_for_its_milliseconds(
    given: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert pylog.RecordFilter(**given) == pylog.RecordFilter(**meant)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keys": ["user-80"]}, "keys has 'user-80', expected bytes: keys are bytes"),
        ({"keys": "user-80"}, "keys has 'user-80', expected bytes"),
        ({"topics": [b"orders"]}, "topics has b'orders', expected str"),
        ({"topics": 5}, "topics has 5, expected str"),
        ({"partitions": ["0"]}, "partitions has '0', expected int"),
        ({"partitions": True}, "partitions has True, expected int"),
        ({"min_offset": "7"}, "min_offset is '7', expected a whole number"),
        ({"min_offset": 1.5}, "min_offset is 1.5, expected a whole number"),
        ({"min_timestamp": "2024-11-07"}, "min_timestamp is '2024-11-07', expected milliseconds"),
        ({"max_timestamp": dt.datetime(2024, 11, 7)}, "has no time zone"),  # noqa: DTZ001 - that
    ],
)
def test_a_predicate_that_means_nothing_is_refused_when_it_is_made(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        pylog.RecordFilter(**given)


def test_a_topic_whose_name_is_a_part_of_another_one_is_not_read(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 5_000, None, b"v")])]}, name="orders-0")
    assert pylog.scan(tmp_path, where=pylog.RecordFilter(topics="ordersX")).count() == 0  # type: ignore[arg-type]
    assert pylog.scan(tmp_path, where=pylog.RecordFilter(topics="orders")).count() == 1  # type: ignore[arg-type]


def stored_with_header_time(offset: int, timestamp: int, header_time: int) -> Built:
    """Make a batch of one record whose header has another largest timestamp."""
    built = batch_v2([Stored(offset, timestamp, b"k", b"value")])
    data = bytearray(built.data)
    struct.pack_into(">q", data, 35, header_time)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return dataclasses.replace(built, data=bytes(data), max_timestamp=header_time)


@pytest.mark.parametrize("header_time", [-1, 0, 4_999])
def test_the_records_decide_where_a_header_has_another_largest_timestamp(
    tmp_path: Path, header_time: int
) -> None:
    log = [
        batch_v2([Stored(0, 1_000, b"k", b"value")]),
        stored_with_header_time(1, 6_000, header_time),
        batch_v2([Stored(2, 7_000, b"k", b"value")]),
    ]
    directory = write_partition(tmp_path, {0: log})
    late = pylog.RecordFilter(min_timestamp=5_000)
    assert pylog.scan(directory, where=late).to_table()["offset"].to_pylist() == [1, 2]
    contained: list[str]
    for contained in ([], ["val"]):
        found = pylog.search(directory, min_timestamp=5_000, value_contains=contained)
        assert [offset for batch in found for offset in batch["offset"].to_pylist()] == [1, 2]
        trusting = pylog.search(
            directory,
            min_timestamp=5_000,
            trust_batch_timestamps=True,
            value_contains=contained,
        )
        assert [offset for batch in trusting for offset in batch["offset"].to_pylist()] == [2]


def test_headers_with_log_append_time_decide_and_others_where_they_are_trusted(
    tmp_path: Path,
) -> None:
    append_time = batch_v2([Stored(0, 1_000, b"k", b"value")], append_time=1_000)
    log = [append_time, batch_v2([Stored(1, 1_000, b"k", b"value")])]
    directory = write_partition(tmp_path, {0: log})

    late = pylog.RecordFilter(min_timestamp=1_500)
    (task,) = pylog.scan(directory, where=late).plan()
    assert task.slices[0].start_position == len(append_time.data)
    trusting = dataclasses.replace(late, trusts_batch_timestamps=True)
    assert not pylog.scan(directory, where=trusting).plan()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("timeout", "timeout"),
        ("a.timeout", "timeout"),
        ("ERROR.*time out$", "time out"),
        (r"\[error\]", "[error]"),
        (r"\d{4}-x", "-x"),
        ("colou?r", "colo"),
        ("colou*r", "colo"),
        ("go+gle", "gle"),
        ("ab{2,3}cd", "cd"),
        ("[abc]def", "def"),
        ("[]abc]d", "d"),
        ("[^]abc]d", "d"),
        (r"[\]abc]d", "d"),
        ("(one)two", "two"),
        (r"(o\)(n[)]e)+)two", "two"),
        ("one|two", ""),
        ("(?i)one", ""),
        ("one(?!two)", ""),
        ("x{", ""),
        ("", ""),
    ],
)
def test_the_longest_text_outside_of_groups_is_required(pattern: str, text: str) -> None:
    assert required_text(pattern, re.compile(pattern).flags) == text


def test_flags_that_change_what_characters_mean_leave_nothing() -> None:
    assert required_text("one", re.IGNORECASE) == ""
    assert required_text("one two", re.VERBOSE) == ""


def test_whatever_a_random_pattern_matches_has_the_text() -> None:
    chance = random.Random(20_261_123)
    parts = [
        "a",
        "b",
        "ab",
        ".",
        "a*",
        "b+",
        "a?",
        "(ab)",
        "(a|b)",
        "[ab]",
        "[^a]",
        "b{2}",
        "a{0,1}",
    ]
    parts += [r"\.", r"\w", r"\x61", r"\Z", "^", "$", "b*?", "(a)?", r"\b", "{", "b{,2}"]
    matches = 0
    for _ in range(20_000):
        pattern = "".join(chance.choices(parts, k=chance.randint(1, 5)))
        try:
            compiled = re.compile(pattern)
        except re.error:
            continue
        text = "".join(chance.choices("ab.{", k=chance.randint(0, 8)))
        match = compiled.search(text)
        if match is not None:
            matches += 1
            assert required_text(pattern, compiled.flags) in match[0], (pattern, text)
    assert matches > 5_000
