"""Random damage: every byte is read or reported, and so is every record that is wanted."""

from __future__ import annotations

import bisect
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st

import pylog
from tests.property.test_damage import damages, logs
from tests.support.batches import Built, joined
from tests.support.damage import positions
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.reading.damage import DamagedRange

HEADER_SIZE_V2 = 61
NEVER = st.sampled_from((False,))
WINDOW_BYTES = st.sampled_from((17, 300, 1 << 22))


def read(directory: Path, **options: object) -> tuple[list[tuple[int, bytes]], list[DamagedRange]]:
    scan = pylog.scan(directory, mode="DROPMALFORMED", columns=["offset", "key"], **options)  # type: ignore[arg-type]
    table = scan.to_table().to_pydict()
    return list(zip(table["offset"], table["key"], strict=True)), scan.damage.ranges


def check_bytes(
    batches: Sequence[Built],
    content: bytes,
    found: Sequence[tuple[int, bytes]],
    ranges: Sequence[DamagedRange],
) -> None:
    """Check that what was read and what was reported is all of the file, but for a torn tail."""
    starts = positions(batches)
    keys = {key for _, key in found}
    spans = [(each.position, each.end_position) for each in ranges if not each.is_kept]
    for built, start in zip(batches, starts, strict=False):
        read_keys = [record.key in keys for record in built.records]
        assert all(read_keys) or not any(read_keys)
        if read_keys[0]:
            spans.append((start, start + len(built.data)))
    at = 0
    for start, end in sorted(spans):
        assert start == at, f"bytes {at} to {start} are neither read nor reported, or both"
        at = end
    rest = content[at:]
    size = int.from_bytes(rest[8:12], "big", signed=True)
    assert len(rest) < 17 or not any(rest) or size > len(rest) - 12


def check_range(
    batches: Sequence[Built], directory: Path, data: st.DataObject, window_bytes: int
) -> None:
    """Of a part of the log, whatever is missing lies in a range that is reported."""
    log_end = pylog.scan(directory, mode="DROPMALFORMED").plan()
    highest = max((task.end_offset for task in log_end), default=0)
    start = data.draw(st.integers(0, highest))
    end = data.draw(st.integers(start, highest))
    found, ranges = read(directory, start=start, end=end, window_bytes=window_bytes)
    truth = [(each.offset, each.key) for built in batches for each in built.records]
    assert set(found) <= set(truth)
    for offset, key in truth:
        if start <= offset < end and (offset, key) not in found:
            assert any(
                each.next_offset <= offset and (each.end_offset is None or offset < each.end_offset)
                for each in ranges
            ), f"offset {offset} of {start} to {end} is missing and in none of {ranges}"


def may_hide_behind_damage(batches: Sequence[Built], places: Sequence[int]) -> bool:
    """Whether a batch with another one's image in its value is damaged, and the one after it is.

    Then nothing of the log contradicts the image: docs/guarantees.md states it.
    """
    starts = positions(batches)
    damaged = {bisect.bisect_right(starts, at) - 1 for at in places}
    return any(
        {index, index + 1} <= damaged
        and any(len(record.value or b"") > HEADER_SIZE_V2 for record in built.records)
        for index, built in enumerate(batches)
    )


def write(directory: str, content: bytes) -> Path:
    whole = Built(content, (), 2, 0, 0)
    return write_partition(Path(directory), {0: [whole]}, with_index=False, with_time_index=False)


@given(data=st.data(), batches=logs(), window_bytes=WINDOW_BYTES)
def test_whatever_is_damaged_is_reported(
    data: st.DataObject, batches: list[Built], window_bytes: int
) -> None:
    content = bytearray(joined(batches))
    drawn = data.draw(damages(batches))
    places = [at for damage in drawn for at in range(damage.at, damage.at + damage.length)]
    assume(not may_hide_behind_damage(batches, places))
    for damage in drawn:
        damage.apply(content)
    with tempfile.TemporaryDirectory() as place:
        directory = write(place, bytes(content))
        check_bytes(batches, bytes(content), *read(directory, window_bytes=window_bytes))
        check_range(batches, directory, data, window_bytes)


@given(
    data=st.data(),
    # Of a v0/v1 wrapper the first offset is known only once it is decompressed: the one before may
    # have been given by then.
    batches=logs(is_old=NEVER, has_gaps=NEVER),
    window_bytes=WINDOW_BYTES,
)
def test_a_batch_with_a_wrong_offset_is_reported(
    data: st.DataObject, batches: list[Built], window_bytes: int
) -> None:
    # Not one at the end, nor one of the first two after a gap: as well as the second one may have
    # gone down, the first one may have gone up.
    first = 2 if batches[0].base_offset > 0 else 0
    if len(batches) < first + 2:
        return
    which = data.draw(st.integers(first, len(batches) - 2))
    at = positions(batches)[which] + data.draw(st.integers(0, 7))
    content = bytearray(joined(batches))
    content[at] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as place:
        directory = write(place, bytes(content))
        found, ranges = read(directory, window_bytes=window_bytes)
        check_bytes(batches, bytes(content), found, ranges)
        assert all(key == b"k%d" % offset for offset, key in found)
        check_range(batches, directory, data, window_bytes)
