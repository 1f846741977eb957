"""What a `RecordFilter` lets pass by keys, values and headers, in every format of batches."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.batches import Stored, batch_v2, message, wrapper
from tests.support.log_files import write_partition
from tests.unit.reading.searched import offsets_of

if TYPE_CHECKING:
    from pathlib import Path

Holds = Callable[[Stored], bool]


def key_of(record: Stored) -> bytes:
    return b"\0nothing" if record.key is None else record.key


def value_of(record: Stored) -> bytes:
    return b"\0nothing" if record.value is None else record.value


def parts(content: bytes | None, *lengths: int) -> set[bytes]:
    content = content or b""
    return {content[at : at + size] for size in lengths for at in range(len(content))}


def is_umlaut(value: bytes) -> bool:
    return b"\xc3\xa4" in value or b"\xc3\x84" in value


def is_removed_2(record: Stored) -> bool:
    return record.value is None and b"2" in key_of(record)


# Each with what it means, said without the code under test.
CASES: list[tuple[dict[str, Any], Holds]] = [
    ({"key": "user-1"}, lambda each: each.key == b"user-1"),
    ({"key_contains": "ser-"}, lambda each: b"ser-" in key_of(each)),
    ({"key_contains": ["abc", "R"]}, lambda each: {b"abc", b"R"} <= parts(each.key, 1, 3)),
    ({"key_contains": b"\xff"}, lambda each: b"\xff" in key_of(each)),
    ({"key_contains": ""}, lambda each: each.key is not None),
    ({"key_contains": "USER", "ignore_case": True}, lambda each: b"user" in key_of(each).lower()),
    ({"key_regex": "^user-[12]$"}, lambda each: each.key in (b"user-1", b"user-2")),
    ({"key_regex": b"\xff$"}, lambda each: key_of(each).endswith(b"\xff")),
    ({"key_regex": "^u", "ignore_case": True}, lambda each: key_of(each)[:1] in (b"u", b"U")),
    ({"value_contains": "TIMEOUT"}, lambda each: b"TIMEOUT" in value_of(each)),
    (
        {"value_contains": "timeout", "ignore_case": True},
        lambda each: b"timeout" in value_of(each).lower(),
    ),
    (
        {"value_contains": b"TIMEOUT", "ignore_case": True},
        lambda each: b"timeout" in value_of(each).lower(),
    ),
    (
        {"value_regex": re.compile("time(out)?", re.DOTALL), "ignore_case": True},
        lambda each: b"time" in value_of(each).lower(),
    ),
    ({"value_contains": "\u00c4", "ignore_case": True}, lambda each: is_umlaut(value_of(each))),
    ({"tombstones": True}, lambda each: each.value is None),
    ({"tombstones": True, "key_contains": "2"}, is_removed_2),
    ({"header": "trace"}, lambda each: bool(each.headers)),
]


def records(seed: int) -> list[Stored]:
    draw = random.Random(seed)
    keys = [None, b"", b"user-1", b"user-2", b"USER-1", b"user-12", b"abc R", b"k\xff", b"\xffk"]
    values = [None, b"", b"a timeout", b"TIMEOUT", b"time\nout", b"\xc3\xa4", b"\xc3\x84", b"\xff"]
    return [
        Stored(at, 1_000 + at, draw.choice(keys), draw.choice(values), draw.choice(HEADERS))
        for at in range(200)
    ]


HEADERS: list[tuple[tuple[str, bytes | None], ...]] = [(), (("trace", b"1"),)]


@pytest.fixture(scope="module", params=[20_261_127], ids="seed {}".format)
def stored(request: pytest.FixtureRequest) -> list[Stored]:
    return records(request.param)


@pytest.fixture(scope="module")
def logs(stored: list[Stored], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs")
    codecs = ["none", "zstd", "gzip", "lz4"]
    batches = [
        batch_v2(stored[at : at + 10], codec=codecs[at // 10 % 4]) for at in range(0, 200, 10)
    ]
    write_partition(path, {0: batches})
    return path


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize(("tests", "holds"), CASES, ids=[str(tests)[:50] for tests, _ in CASES])
def test_what_passes_is_what_the_test_says(
    logs: Path, stored: list[Stored], tests: dict[str, Any], holds: Holds, *, invert: bool
) -> None:
    expected = [each.offset for each in stored if holds(each) is not invert]
    assert 0 < len(expected) < len(stored)
    where = pylog.RecordFilter.matching(**tests, invert=invert)
    for each in (where, pickle.loads(pickle.dumps(where))):  # noqa: S301 - our own
        assert offsets_of(pylog.scan(logs, where=each, columns=["offset"])) == expected
    assert offsets_of(pylog.search(logs, **tests, invert=invert, threads=2)) == expected
    last = pylog.scan(logs, where=where, columns=["offset"]).last(3)
    assert offsets_of(last) == expected[-3:]


def test_inverted_tests_are_inverted_together_and_times_are_not(
    logs: Path, stored: list[Stored]
) -> None:
    found = pylog.search(
        logs, key="user-1", tombstones=True, min_timestamp=1_100, max_timestamp=1_150, invert=True
    )
    assert offsets_of(found) == [
        each.offset
        for each in stored[100:151]
        if not (each.key == b"user-1" and each.value is None)
    ]


def test_filters_are_combined_with_all_that_they_exclude(logs: Path, stored: list[Stored]) -> None:
    matching = pylog.RecordFilter.matching
    where = matching(tombstones=True, invert=True) & matching(key="user-1", invert=True)
    where &= pylog.RecordFilter(min_offset=50)
    assert offsets_of(pylog.scan(logs, where=where)) == [
        each.offset for each in stored[50:] if each.value is not None and each.key != b"user-1"
    ]
    by_time = pylog.RecordFilter(excluded=(pylog.RecordFilter(max_timestamp=1_190),))
    assert offsets_of(pylog.scan(logs, where=by_time)) == list(range(191, 200))


def test_older_formats_are_looked_through_too(tmp_path: Path) -> None:
    old = message(Stored(0, 1, b"user-1", None), magic=1)
    inner = wrapper(
        [Stored(1, 1, b"user-2", b"v"), Stored(2, 1, b"user-3", None)], magic=1, codec="gzip"
    )
    write_partition(tmp_path, {0: [old, inner]})
    assert offsets_of(pylog.search(tmp_path, tombstones=True)) == [0, 2]
    assert offsets_of(pylog.search(tmp_path, key_contains="r-2")) == [1]
    assert offsets_of(pylog.search(tmp_path, key_contains="r-2", invert=True)) == [0, 2]


@pytest.mark.parametrize(
    "excluded",
    [
        {},
        {"topics": "orders", "keys": b"k"},
        {"partitions": 0, "keys": b"k"},
        {"min_offset": 1, "keys": b"k"},
        {"max_offset": 1},
    ],
)
def test_what_is_excluded_is_about_records(excluded: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an excluded filter has timestamps, keys or content, and"):
        pylog.RecordFilter(excluded=(pylog.RecordFilter(**excluded),))


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="invert says which records are not wanted: give a key"):
        pylog.RecordFilter.matching(invert=True)
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        pylog.RecordFilter.matching(key_regex="(", ignore_case=True)


@pytest.mark.parametrize(
    ("tests", "column", "text", "spans"),
    [
        ({"key": "user-1"}, "key", "user-1", [(0, 6)]),
        ({"key": "user-1"}, "value", "user-1", []),
        ({"key_contains": "a+"}, "key", "a+a a+", [(0, 2), (4, 6)]),
        ({"value_contains": b"\xff"}, "value", "x\udcff", [(1, 2)]),
        ({"value_contains": "X", "ignore_case": True}, "value", "x X", [(0, 1), (2, 3)]),
        ({"value_regex": "a*"}, "value", "baa", [(0, 0), (1, 3), (3, 3)]),
        ({"value_regex": b"a"}, "value", "a", []),
        ({"value_contains": "x", "value_regex": "y"}, "value", "yx", [(1, 2), (0, 1)]),
        ({"json_path": "$.a>1"}, "value", '{"a":20}', [(5, 7)]),
        ({"json_path": "$.a>1"}, "value", '{"a":20', []),
        ({"header": "trace"}, "value", "trace", []),
        ({"value_contains": "x", "invert": True}, "value", "x", []),
    ],
)
def test_what_is_found_is_known_by_its_place(
    tests: dict[str, Any], column: str, text: str, spans: list[tuple[int, int]]
) -> None:
    assert list(pylog.RecordFilter.matching(**tests).spans(column, text)) == spans
