"""Offsets inside a batch go up and stay within the batch's: else it is damage, whatever is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import InvalidRecordError, LogStorageError
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    message_bytes,
    plain_records,
    record_v2,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, compress
from tests.support.log_files import write_partition
from tests.support.reading import read_skipping_damage, spans

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LONG = b"v" * 9_000  # not of the kernel's common form
BEFORE, AFTER = batch_v2(plain_records(0, 3)), batch_v2(plain_records(6, 3))


def v2_batch(deltas: Sequence[int], *, codec: str = "none", value: bytes = b"v") -> Built:
    """Return a batch of offsets 3 to 5 whose records say otherwise."""
    payload = b"".join(record_v2(0, delta, b"k", value) for delta in deltas)
    data = batch_v2_of(
        compress(codec, payload),
        base_offset=3,
        last_offset_delta=2,
        record_count=len(deltas),
        attributes=CODEC_IDS[codec],
    )
    return Built(data, (), 2, 3, 5, codec=codec)


def wrapper_batch(offsets: Sequence[int], *, magic: int) -> Built:
    entries = b"".join(message_bytes(offset, b"k", b"v", magic=magic) for offset in offsets)
    data = wrapper_of(compress("gzip", entries, magic), offset=5, magic=magic, codec="gzip")
    return Built(data, (), magic, 3, 5, codec="gzip")


WRONG = {
    "v2 back": (v2_batch([0, 1, 0]), "record has offset 3, expected 5 to 5"),
    "v2 twice": (v2_batch([1, 1]), "record has offset 4, expected 5 to 5"),
    "v2 below": (v2_batch([-1, 1]), "record has offset 2, expected 3 to 5"),
    "v2 above": (v2_batch([0, 5]), "record has offset 8, expected 4 to 5"),
    "v2 long values": (v2_batch([0, 1, 0], value=LONG), "record has offset 3, expected 5 to 5"),
    "v2 zstd": (v2_batch([0, 3], codec="zstd"), "record has offset 6, expected 4 to 5"),
    "v1 back": (wrapper_batch([1, 0, 2], magic=1), "message has offset 3, expected 5 to 5"),
    "v1 twice": (wrapper_batch([1, 1, 2], magic=1), "message has offset 4, expected 5 to 5"),
    "v1 above": (wrapper_batch([0, 3, 2], magic=1), "message has offset 6, expected 4 to 5"),
    "v0 back": (wrapper_batch([4, 3, 5], magic=0), "message has offset 3, expected 5 to 5"),
}


@pytest.fixture(params=WRONG)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, Built]:
    wrong, reason = WRONG[request.param]
    return write_partition(tmp_path, {0: [BEFORE, wrong, AFTER]}), reason, wrong


WAYS: dict[str, dict[str, Any]] = {
    "all": {},
    "offsets alone": {"columns": ["offset"]},
    "values alone": {"columns": ["value"]},
    "no column": {"columns": []},
    "from inside": {"start": 5},
    "up to the inside": {"end": 4},
    "small windows": {"window_bytes": 17},
    "a filter on keys": {"where": pylog.RecordFilter(keys=frozenset({b"k"}))},
    "a filter on times": {"where": pylog.RecordFilter(min_timestamp=-1)},
    "small tasks": {"max_partition_bytes": 50},
    "few records a task": {"max_records_per_partition": 1},
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_an_error_however_the_batch_is_read(case: tuple[Path, str, Built], way: str) -> None:
    directory, reason, _ = case
    with pytest.raises(InvalidRecordError) as caught:
        pylog.scan(directory, **WAYS[way]).to_table()
    assert reason in caught.value.reason
    assert (caught.value.path, caught.value.position) == (
        str(directory / f"{0:020d}.log"),
        len(BEFORE.data),
    )


@pytest.mark.parametrize("way", WAYS)
def test_the_other_modes_leave_it_out_and_report_it(
    case: tuple[Path, str, Built], way: str
) -> None:
    directory, _, wrong = case
    options = dict(WAYS[way])
    columns = options.pop("columns", None)
    found, ranges = read_skipping_damage(directory, **options)
    start, end = options.get("start", 0), options.get("end", 9)
    is_cut = isinstance(options.get("where"), pylog.RecordFilter) and "keys" in way
    sound = [] if is_cut else [*range(3), *range(6, 9)]
    assert found == [offset for offset in sound if start <= offset < end]
    at = len(BEFORE.data)
    assert {span[:2] for span in spans(ranges)} == {(at, at + len(wrong.data))}
    if way in ("from inside", "up to the inside", "few records a task", "small tasks"):
        # What is before and after has not been looked at, and is not known, then.
        assert all(span[2] in (0, 3) and span[3] in (6, None) for span in spans(ranges))
    else:
        assert {span[2:] for span in spans(ranges)} == {(3, 6)}
    if columns is not None:
        scan = pylog.scan(directory, mode="DROPMALFORMED", columns=columns)
        assert scan.to_table().num_rows == scan.count() == len(found)


@pytest.mark.parametrize("options", [{"start": 4}, {"end": 5}, {"start": 4, "end": 5}])
def test_a_count_that_has_to_decode_the_batch_refuses_it(
    case: tuple[Path, str, Built], options: dict[str, int]
) -> None:
    directory, _, _ = case
    with pytest.raises(InvalidRecordError):
        pylog.scan(directory, **options).count()  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [-1, -2, 4, 2**31 - 1])
def test_a_count_that_the_offsets_have_no_room_for_is_not_trusted(
    tmp_path: Path, count: int
) -> None:
    payload = b"".join(record_v2(0, delta, b"k", b"v") for delta in range(3))
    data = batch_v2_of(payload, base_offset=3, last_offset_delta=2, record_count=count)
    directory = write_partition(tmp_path, {0: [BEFORE, Built(data, (), 2, 3, 5), AFTER]})
    with pytest.raises(LogStorageError):
        pylog.scan(directory).count()
    with pytest.raises(LogStorageError):
        pylog.scan(directory).to_table()


def test_gaps_that_compaction_leaves_are_sound(tmp_path: Path) -> None:
    records = [Stored(offset, 1_000, b"k", b"v") for offset in (12, 13, 17)]
    batches = [
        batch_v2(records, base_offset=10, last_offset=19),
        wrapper(
            [each._replace(offset=each.offset + 10) for each in records],
            magic=1,
            codec="gzip",
            first_offset=20,
        ),
        wrapper(
            [each._replace(offset=each.offset + 20) for each in records], magic=0, codec="gzip"
        ),
    ]
    directory = write_partition(tmp_path, {0: batches})
    expected = [12, 13, 17, 22, 23, 27, 32, 33, 37]
    assert pylog.scan(directory).to_table()["offset"].to_pylist() == expected
    assert pylog.scan(directory).count() == 9
