"""What several threads give before an error is what one gives, wherever the error lies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.reading import parts
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True, params=[1, 1 << 12, 1 << 16])
def part_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FIRST_PART_BYTES", request.param)


BATCHES = 40
RECORDS = 10


def given_and_error(
    directory: Path, threads: int, window_bytes: int, limit: int = 1 << 20
) -> tuple[list[int], str]:
    """Return the offsets that were given, and class and text of the error after them."""
    scan = pylog.scan(
        directory, threads=threads, window_bytes=window_bytes, max_decompressed_bytes=limit
    )
    offsets: list[int] = []
    batches = (batch["offset"].to_pylist() for batch in scan.to_batches())
    with pytest.raises(pylog.errors.LogStorageError) as caught:
        offsets.extend(offset for batch in batches for offset in batch)
    return offsets, f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("wrong", range(1, BATCHES - 6))
def test_a_batch_whose_offset_is_too_high_is_never_given(tmp_path: Path, wrong: int) -> None:
    batches = [
        batch_v2(plain_records(RECORDS * at, RECORDS, value_size=90)) for at in range(BATCHES)
    ]
    raised = (RECORDS * (wrong + 1) + 5).to_bytes(8, "big")  # outside the checksum
    batches[wrong] = replace(batches[wrong], data=raised + batches[wrong].data[8:])
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    one, several = (given_and_error(directory, threads, 1 << 12) for threads in (1, 3))
    assert one[0] == list(range(RECORDS * wrong))
    assert several == one


SMALL_WINDOW = 1 << 16, 100_000
DEFAULT_WINDOW = 1 << 22, 1_500_000  # the second window has 1 MiB; the first ends after 268 batches


@pytest.mark.parametrize(
    ("window_bytes", "value_size", "large"),
    [
        *((*SMALL_WINDOW, large) for large in range(30, 150, 7)),
        *((*DEFAULT_WINDOW, large) for large in (260, *range(265, 272), 290, 1400)),
    ],
)
@pytest.mark.thorough(one_in=5)
def test_a_batch_that_is_too_large_is_the_same_error(
    tmp_path: Path, window_bytes: int, value_size: int, large: int
) -> None:
    values = [value_size if at == large else 900 for at in range(large + 200)]
    batches = [batch_v2(plain_records(at, 1, value_size=size)) for at, size in enumerate(values)]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    one, several = (
        given_and_error(directory, threads, window_bytes, limit=10_000) for threads in (1, 3)
    )
    assert one[0] == list(range(large))
    assert several == one
