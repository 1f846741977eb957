"""What a search says of itself: how much it has read, and what it could not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.columnar import decode
from pylog.columnar.json_path import JsonPath
from pylog.errors import UnknownTopicOrPartitionError
from tests.support.batches import (
    Stored,
    batch_v2,
    batch_v2_of,
    joined,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.codecs import CODEC_IDS
from tests.support.log_files import segment_path, write_partition
from tests.unit.reading.typed_logs import FIRST, SECOND, write_orders, write_values

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.record.batch_scan import Window
    from tests.support.batches import Built


def offsets_of(found: pylog.results.Search) -> list[int]:
    return [offset for batch in found for offset in batch.column("offset").to_pylist()]


def needle(offset: int, codec: str = "none") -> Built:
    return batch_v2([Stored(offset, 1, b"k", b"a needle in it")], codec=codec)


def hay(offset: int, count: int = 5) -> Built:
    return batch_v2(plain_records(offset, count))


def test_a_match_in_a_damaged_batch_is_no_match_and_its_range_is_named(tmp_path: Path) -> None:
    batches = [hay(0), needle(5), with_bad_crc(needle(6)), needle(7), hay(8)]
    path = write_partition(tmp_path, {0: batches})
    found = pylog.search(tmp_path, value_contains="needle")
    assert offsets_of(found) == [5, 7]
    [damaged] = found.summary.unreadable
    start = len(joined(batches[:2]))
    assert (damaged.path, damaged.position) == (str(segment_path(path, 0)), start)
    assert damaged.end_position == start + len(batches[2].data)
    assert (damaged.next_offset, damaged.end_offset) == (6, 7)


def test_damage_is_named_wherever_it_is_and_whatever_is_searched_for(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [needle(0), with_bad_crc(hay(1)), needle(6)]})
    found = pylog.search(tmp_path, value_contains="nowhere")
    assert offsets_of(found) == []
    assert [(each.next_offset, each.end_offset) for each in found.summary.unreadable] == [(1, 6)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_cannot_be_decoded_is_named(tmp_path: Path, codec: str) -> None:
    """Its checksum is right, and the bytes that are searched for are in it."""
    data = batch_v2_of(b"needle" * 9, base_offset=1, attributes=CODEC_IDS[codec])
    broken = replace(needle(1), data=data)
    batches = [needle(0, codec), broken, hay(2), needle(7, codec)]
    write_partition(tmp_path, {0: batches})
    found = pylog.search(tmp_path, value_contains="needle")
    assert offsets_of(found) == [0, 7]
    assert [(each.next_offset, each.end_offset) for each in found.summary.unreadable] == [(1, 2)]


def test_matches_before_a_batch_that_cannot_be_decoded_come_once(tmp_path: Path) -> None:
    """Each change of format ends a group of batches that are decoded together."""
    old = message(Stored(6, 1, b"k", b"needle"), magic=1)
    broken = replace(needle(7), data=batch_v2_of(b"needle" * 9, base_offset=7))
    write_partition(tmp_path, {0: [hay(0), needle(5), old, broken, needle(8)]})
    found = pylog.search(tmp_path, value_contains="needle")
    assert offsets_of(found) == [5, 6, 8]
    assert [(each.next_offset, each.end_offset) for each in found.summary.unreadable] == [(7, 8)]


def test_a_file_cut_short_is_searched_up_to_its_end(tmp_path: Path) -> None:
    path = segment_path(write_partition(tmp_path, {0: [needle(0), needle(1), hay(2)]}), 0)
    path.write_bytes(path.read_bytes()[:-3])
    found = pylog.search(tmp_path, value_contains="needle")
    assert offsets_of(found) == [0, 1]
    assert found.summary.unreadable == ()


def test_at_its_limit_a_search_stops_and_has_read_little(tmp_path: Path) -> None:
    batches = [
        needle(0),
        *(batch_v2(plain_records(1 + at, 1, value_size=10_000)) for at in range(400)),
    ]
    write_partition(tmp_path, {0: batches})
    write_partition(tmp_path, {0: [with_bad_crc(needle(0))]}, name="zz-0")
    found = pylog.search(tmp_path, value_contains="needle", limit=1)
    assert offsets_of(found) == [0]
    summary = found.summary
    assert not summary.is_complete
    assert summary.unreadable == ()
    assert summary.scanned_bytes < summary.total_bytes / 10
    assert summary.total_bytes > 4_000_000


def test_the_summary_counts_what_was_looked_through(tmp_path: Path) -> None:
    set_of_old = wrapper([Stored(at, 1, b"k", b"needle") for at in (5, 6)], magic=1, codec="gzip")
    batches = [hay(0), set_of_old, hay(7)]
    write_partition(tmp_path, {0: batches})
    write_partition(tmp_path, {0: [needle(0)]}, name="web-1")
    found = pylog.search(tmp_path, value_contains="needle")
    assert offsets_of(found) == [5, 6, 0]
    size_bytes = len(joined(batches)) + len(needle(0).data)
    assert found.summary == pylog.results.SearchSummary(
        partitions=2,
        matches=3,
        scanned_bytes=size_bytes,
        total_bytes=size_bytes,
        scanned_batches=4,
        scanned_records=11,
        uncounted_batches=1,
        unreadable=(),
        is_complete=True,
    )


def test_only_batches_with_the_bytes_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    before = decode.RecordDecoder.decode

    def counting(self: decode.RecordDecoder, window: Window, *offsets: int) -> object:
        decoded.extend(window.headers.last_offsets.tolist())
        return before(self, window, *offsets)

    monkeypatch.setattr(decode.RecordDecoder, "decode", counting)
    batches = [
        hay(0),
        needle(5),
        hay(6),
        needle(11, "zstd"),
        batch_v2(plain_records(12, 5), codec="zstd"),
    ]
    write_partition(tmp_path, {0: batches})
    assert offsets_of(pylog.search(tmp_path, value_regex="n(e+)dle in")) == [5, 11]
    assert decoded == [5, 11]


def test_progress_goes_up_to_the_total(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [hay(0)], 5: [hay(5)]})
    steps: list[tuple[int, int]] = []
    found = pylog.search(
        tmp_path, value_contains="x", progress=lambda done, total: steps.append((done, total))
    )
    assert offsets_of(found) == []
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1] == (found.summary.total_bytes, found.summary.total_bytes)


def test_bounds_on_offsets_and_timestamps_hold(tmp_path: Path) -> None:
    records = [Stored(at, 1_000 + at, b"k", b"needle") for at in range(10)]
    write_partition(tmp_path, {0: [batch_v2(records)]})
    found = pylog.search(
        tmp_path, key="k", start=2, end=9, min_timestamp=1_004, max_timestamp=1_006
    )
    assert offsets_of(found) == [4, 5, 6]
    assert offsets_of(pylog.search(tmp_path, key="k", start=pylog.Timestamp(1_008))) == [8, 9]


def test_a_range_that_lies_outside_of_a_partition_is_clipped(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [needle(0)]})
    write_partition(tmp_path, {7: [needle(7)]}, name="web-0")
    found = pylog.search(tmp_path, value_contains="needle", start=3)
    assert offsets_of(found) == [7]


def test_columns_may_be_chosen_and_are_all_by_default(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [needle(0)]})
    [batch] = pylog.search(tmp_path, value_contains="needle", columns=["offset", "key"])
    assert batch.to_pylist() == [{"offset": 0, "key": b"k"}]
    [batch] = pylog.search(tmp_path, header=[], value_contains="needle")
    assert {"headers", "batch", "value"} <= set(batch.schema.names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to search for was given"),
        ({"value_contains": []}, "nothing to search for was given"),
        ({"value_regex": "("}, "'(' is not a regular expression"),
        ({"json_path": "a"}, "JSON path 'a' cannot be read"),
        ({"key": "k", "limit": -1}, "limit is -1, expected 0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    write_partition(tmp_path, {0: [needle(0)]})
    with pytest.raises(ValueError, match=re.escape(message)):
        pylog.search(tmp_path, **arguments)  # type: ignore[arg-type]


def test_a_topic_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [needle(0)]})
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'nope' here"):
        pylog.search(tmp_path, topics=["nope"], key="k")


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize(
    ("json_path", "parsed"),
    [
        ("$.user.id=77", [77]),
        ("$.user.id=770e-1", [77]),
        ("$.user.name=Ann", [200]),
        ("$.nowhere", []),
        ("$.price=7.5", [7]),
    ],
)
def test_only_values_that_may_match_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, json_path: str, parsed: list[int]
) -> None:
    """There are escapes, points and numbers of all kinds in every value."""

    def value(number: int) -> bytes:
        name = "Ann" if number == 200 else "Bob"
        return (
            r'{"at":7.5,"note":"say \"77\" \u00fc\/",'
            f'"user": {{"name": "{name}", "id" : {number}}},"price":{number}.50}}'
        ).encode()

    batches = [
        batch_v2([Stored(at, 1, None, value(at)) for at in range(start, start + 50)], codec=codec)
        for start in range(0, 300, 50)
    ]
    write_partition(tmp_path, {0: batches})
    seen: list[object] = []
    holds = JsonPath.holds

    def noted(self: JsonPath, stored: object) -> bool:
        seen.append(stored)
        return holds(self, stored)

    monkeypatch.setattr(JsonPath, "holds", noted)
    assert offsets_of(pylog.search(tmp_path, json_path=json_path)) == parsed
    assert seen == [value(number) for number in parsed]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    logs = write_orders(tmp_path)
    write_values(logs, "orders-1", [FIRST, b"text", SECOND], key=b"k")
    return logs


def places_of(found: pylog.results.Search) -> list[tuple[int, int]]:
    columns = ("partition", "offset")
    return [
        place
        for batch in found
        for place in zip(*(batch.column(each).to_pylist() for each in columns), strict=True)
    ]


@pytest.mark.parametrize(
    ("tests", "places"),
    [
        ({"where": "value.id = 2"}, [(0, 2), (1, 2)]),
        ({"where": "value.id = 2", "key": "k"}, [(1, 2)]),
        ({"where": "value.id = 2", "min_timestamp": 1_001}, []),
        ({"where": "value.id = 2", "max_timestamp": 1_000}, [(0, 2), (1, 2)]),
        ({"where": "value.id > 0", "limit": 2}, [(0, 0), (0, 2)]),
        ({"where": "value.id = 2", "invert": True}, [(0, 0), (0, 1), (1, 0)]),
        ({"where": "value.id = 2", "key": "k", "invert": True}, [(0, 0), (0, 1), (0, 2), (1, 0)]),
        ({"where": "value.id IS NULL", "tombstones": True}, [(0, 1)]),
        ({"where": "value.id IS NOT NULL", "tombstones": True}, []),
        ({"key": "k"}, [(1, 0), (1, 2)]),
    ],
)
def test_conditions_on_fields_combine_with_the_other_tests(
    orders: Path, tests: dict[str, Any], places: list[tuple[int, int]]
) -> None:
    found = pylog.search(orders, topics=["orders"], value_format="auto", **tests)
    assert places_of(found) == places


def test_what_could_not_be_decoded_is_counted(orders: Path) -> None:
    found = pylog.search(orders, topics=["orders"], value_format="auto", where="value.id = 2")
    assert found.summary.undecodable == {}
    assert len(places_of(found)) == 2
    assert found.summary.undecodable == {("orders", "value"): 1}
    document = found.summary.document()
    assert document["undecodable"] == [{"topic": "orders", "column": "value", "count": 1}]


def test_a_condition_without_a_format_or_field_is_an_error(orders: Path) -> None:
    with pytest.raises(ValueError, match="give --value-format auto"):
        pylog.search(orders, topics=["orders"], where="value.id = 2")
    with pytest.raises(ValueError, match="keys are bytes here"):
        pylog.search(orders, topics=["orders"], value_format="auto", where="key.id = 2")
