"""What several threads read of a damaged log is what one reads: rows, errors and damage."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.reading import parts
from tests.property.test_damage import Damage, logs
from tests.support.batches import Built, joined
from tests.support.corruption import with_sound_checksums
from tests.support.log_files import (
    offset_entries,
    offset_index_bytes,
    segment_path,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.damage import DamagedRange


@pytest.fixture(autouse=True, scope="module", params=[(1, 1), (200, 1 << 12), (1 << 20, 1 << 24)])
def part_sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "FIRST_PART_BYTES", request.param[0])
        patch.setattr(parts, "MOST_DECODED_BYTES", request.param[1])
        yield


COLUMNS = ["offset", "key", "value", "_corrupt_record"]


def outcome(
    directory: Path,
    threads: int,
    **options: Any,  # noqa: ANN401 - of scan
) -> tuple[list[dict[str, object]], str | None, list[DamagedRange]]:
    """Return rows, the error after them, and the damage."""
    rows: list[dict[str, object]] = []
    try:
        scan = pylog.scan(directory, threads=threads, **{"columns": COLUMNS, **options})
        scan.plan()
    except pylog.errors.LogStorageError as error:
        return rows, f"{type(error).__name__}: {error}", []
    try:
        for batch in scan.to_batches():
            rows += batch.to_pylist()
    except pylog.errors.LogStorageError as error:
        return rows, f"{type(error).__name__}: {error}", scan.damage.ranges
    return rows, None, scan.damage.ranges


@given(
    data=st.data(),
    partitions=st.lists(logs(), min_size=2, max_size=6),
    threads=st.integers(2, 4),
    min_partitions=st.sampled_from((None, 9)),
)
def test_partitions_side_by_side_are_those_of_one_thread(
    data: st.DataObject, partitions: list[list[Built]], threads: int, min_partitions: int | None
) -> None:
    wrong = data.draw(st.sets(st.integers(0, len(partitions) - 1), max_size=2))
    with tempfile.TemporaryDirectory() as place:
        for number, batches in enumerate(partitions):
            content = bytearray(joined(batches))
            if number in wrong:
                content[data.draw(st.integers(0, len(content) - 1))] ^= 1
            segments = {0: [Built(bytes(content), (), 2, 0, 0)]}
            write_partition(
                Path(place), segments, name=f"t-{number}", with_index=False, with_time_index=False
            )
        options = {"min_partitions": min_partitions, "columns": [*COLUMNS, "partition"]}
        assert outcome(Path(place), threads, **options) == outcome(Path(place), 1, **options)


@given(
    data=st.data(),
    batches=logs(),
    mode=st.sampled_from(list(pylog.ReadMode)),
    is_sealed=st.booleans(),
    is_filtered=st.booleans(),
    is_indexed=st.booleans(),
    window_bytes=st.sampled_from((17, 300, 1 << 22)),
)
def test_threads_and_cuts_change_nothing(
    data: st.DataObject,
    batches: list[Built],
    mode: pylog.ReadMode,
    *,
    is_sealed: bool,
    is_filtered: bool,
    is_indexed: bool,
    window_bytes: int,
) -> None:
    content = bytearray(joined(batches))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        length, pattern = data.draw(st.sampled_from(((1, 1), (1, 0x80), (1, 0xFF), (40, 0))))
        Damage(at, length, pattern).apply(content)
    # Wrong records under a right checksum are what the threads themselves come upon.
    damaged = with_sound_checksums(bytes(content)) if is_sealed else bytes(content)
    where = pylog.RecordFilter(min_timestamp=2, max_timestamp=10**15) if is_filtered else None
    options = {"mode": mode, "window_bytes": window_bytes, "where": where}
    with tempfile.TemporaryDirectory() as place:
        segments = {0: [Built(damaged, (), 2, 0, 0)]}
        directory = write_partition(Path(place), segments, with_index=False, with_time_index=False)
        if is_indexed:
            entries = offset_entries(batches)
            slots = st.integers(0, max(0, len(entries) - 1))
            for slot in data.draw(st.lists(slots, max_size=min(2, len(entries)))):
                offset, position = entries[slot]  # which need not be where a batch begins
                entries[slot] = offset, position + data.draw(st.integers(-3, 3))
            path = segment_path(directory, 0, ".index")
            path.write_bytes(offset_index_bytes(entries, 0))
        one = outcome(directory, 1, **options)
        assert outcome(directory, 4, **options) == one
        if not is_filtered:  # what is too early for a filter is passed over in each part
            for parts_wanted in (2, 50):
                assert outcome(directory, 1, min_partitions=parts_wanted, **options) == one
