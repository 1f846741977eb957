"""What is skipped at the head of a slice: a table of times, and of damage on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.files.byte_source import LocalFile
from pylog.reading import early_batches
from pylog.reading.early_batches import late_part, without_early_batches
from pylog.reading.task_range import SegmentSlice
from tests.support.batches import Built, Stored, batch_v2, joined, message, wrapper
from tests.support.damage import positions, with_flip

if TYPE_CHECKING:
    from pathlib import Path


def at(*times: int, append_time: int | None = None) -> list[Built]:
    """Return a batch of two records for each time: the second one has it."""
    return [
        batch_v2(
            [Stored(2 * place, time - 1, None, b"v"), Stored(2 * place + 1, time, None, b"v")],
            append_time=append_time,
        )
        for place, time in enumerate(times)
    ]


def slice_of(path: Path, batches: list[Built], **fields: Any) -> SegmentSlice:  # noqa: ANN401
    file = path / f"{0:020d}.log"
    file.write_bytes(joined(batches))
    size = file.stat().st_size
    made = SegmentSlice(str(file), 0, None, 0, size, runs_to_segment_end=True)
    return replace(made, **fields)


def skipped(path: Path, batches: list[Built], **where: object) -> int:
    """Return how many batches are skipped."""
    found = late_part(slice_of(path, batches), pylog.RecordFilter(**where))  # type: ignore[arg-type]
    return positions(batches).index(found.start_position)


@pytest.mark.parametrize(
    ("times", "earliest", "expected"),
    [
        ((10, 20, 30), 0, 0),
        ((10, 20, 30), 10, 0),  # its last record is late enough
        ((10, 20, 30), 11, 1),
        ((10, 20, 30), 21, 2),
        ((10, 20, 30), 30, 2),
        ((10, 20, 30), 31, 3),
        ((30, 20, 10), 21, 0),  # one batch after the other, up to the first
        ((10, 30, 20), 25, 1),
    ],
)
def test_batches_are_skipped_up_to_the_first_that_may_be_late_enough(
    times: tuple[int, ...], earliest: int, expected: int, tmp_path: Path
) -> None:
    found = skipped(tmp_path, at(*times), min_timestamp=earliest, trusts_batch_timestamps=True)
    assert found == expected


def test_without_trust_only_the_time_of_the_append_counts(tmp_path: Path) -> None:
    assert skipped(tmp_path, at(10, 20), min_timestamp=15) == 0
    stamped = [*at(10, append_time=10), *at(20, append_time=20)]
    assert skipped(tmp_path, stamped, min_timestamp=15) == 1


def test_filters_without_a_time_skip_nothing(tmp_path: Path) -> None:
    assert skipped(tmp_path, at(10, 20), max_timestamp=5) == 0
    whole = slice_of(tmp_path, at(10, 20))
    assert late_part(whole, None) is whole


@pytest.mark.parametrize("legacy", [False, True])
def test_old_formats_are_skipped_by_their_own_times(tmp_path: Path, *, legacy: bool) -> None:
    records = [Stored(0, 10, None, b"v"), Stored(1, 11, None, b"v")]
    old = (
        [message(each, magic=1) for each in records]
        if legacy
        else [wrapper(records, magic=1, codec="gzip")]
    )
    batches = [*old, *at(30)]
    found = skipped(tmp_path, batches, min_timestamp=20, trusts_batch_timestamps=True)
    assert found in (0, len(old))  # where it is not certain, nothing is skipped


TRUSTS = pylog.RecordFilter(min_timestamp=25, trusts_batch_timestamps=True)


@pytest.mark.parametrize(
    ("damaged", "at_byte", "is_skipped"),
    [
        (0, 42, True),  # its largest time is another one; a reader would have skipped it, too
        (0, 10, False),  # its size leads nowhere
        (2, 75, False),  # where it would begin to read is no intact batch
        (3, 75, False),  # the batch after that
        (4, 75, True),
    ],
)
def test_the_slice_stays_whole_where_sizes_do_not_lead_to_intact_batches(
    damaged: int, at_byte: int, tmp_path: Path, *, is_skipped: bool
) -> None:
    batches = at(10, 20, 30, 40, 50)
    batches[damaged] = with_flip(batches[damaged], at_byte, 0x01)
    found = late_part(slice_of(tmp_path, batches), TRUSTS)
    assert (found.start_position == positions(batches)[2]) is is_skipped
    assert is_skipped or found.start_position == 0


def test_the_last_batch_is_enough_if_it_ends_with_the_slice(tmp_path: Path) -> None:
    batches = at(10, 20, 30)
    for end, expected in ((positions(batches)[3], 2), (positions(batches)[3] - 1, 0)):
        part = slice_of(tmp_path, batches, end_position=end)
        found = late_part(part, TRUSTS)
        assert positions(batches).index(found.start_position) == expected


def test_strides_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = at(*range(0, 40, 2))
    expected = positions(batches)[13]  # the first whose last time is 25 or later
    for stride in (1, 61, 100, 1 << 20):
        monkeypatch.setattr(early_batches, "_STRIDE", stride)
        assert late_part(slice_of(tmp_path, batches), TRUSTS).start_position == expected


class Remote(LocalFile):
    is_read_by_kernels = False


def test_files_of_stores_and_those_that_cannot_be_read_are_read_as_they_are(tmp_path: Path) -> None:
    whole = slice_of(tmp_path, at(10, 20, 30))
    with Remote(whole.path) as source:
        assert without_early_batches(source, whole, TRUSTS) is whole
    corrupt = slice_of(tmp_path, at(10), defect="damage", is_corrupt=True)
    assert late_part(corrupt, TRUSTS) is corrupt
    unreadable = slice_of(tmp_path, at(10), defect="no permission")
    assert late_part(unreadable, TRUSTS) is unreadable
