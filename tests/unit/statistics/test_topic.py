"""A topic of which a sample is read: bounds, and what is left out."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.unit.statistics.random_topics import NOW_MS

if TYPE_CHECKING:
    from pathlib import Path


def test_a_codec_compressed_again_is_as_large_as_it_was(tmp_path: Path) -> None:
    written = tmp_path / "logs"
    table = __import__("pyarrow").table(
        {"value": [b'{"id": %d, "name": "%d"}' % (each, each % 7) for each in range(20_000)]}
    )
    pylog.create_topic(written, "orders", partitions=1)
    pylog.write_topic(written, "orders", table, compression="lz4")
    found = pylog.stats(written, read="sample").document()
    [topic] = found["topics"]
    ratios = {
        (row["codec"], row["level"], row["batchSize"]): row["ratio"]
        for row in found["recompression"]
    }
    assert ratios["lz4", None, None] == 1.0
    assert ratios["lz4", None, 16384] == pytest.approx(1.0, abs=0.01)
    assert ratios["zstd", 9, None] < ratios["zstd", 1, None] < 1.0 < ratios["none", None, None]
    assert ratios["zstd", 3, 1 << 20] < ratios["zstd", 3, 16384]
    assert all(
        row["estimatedBytes"] == round(row["ratio"] * topic["bytes"])
        for row in found["recompression"]
    )


def test_a_sample_of_a_larger_topic_has_bounds_and_the_truth_lies_within(tmp_path: Path) -> None:
    draw = random.Random(5)
    counts: Counter[bytes] = Counter()
    batches = []
    for place in range(600):
        keys = [b"hot" if draw.random() < 0.3 else b"k%d" % draw.randrange(500) for _ in range(20)]
        counts.update(keys)
        stored = [
            Stored(20 * place + at, NOW_MS + place, key, b"v" * draw.randrange(400, 500))
            for at, key in enumerate(keys)
        ]
        batches.append(batch_v2(stored))
    segments = {20 * start: batches[start : start + 30] for start in range(0, 600, 30)}
    write_partition(tmp_path, segments)
    found = pylog.stats(tmp_path, read="sample", sample_bytes=2 << 20, most=3)
    assert found.sampled_bytes < 4 << 20
    for row in found.document()["hotKeys"]:
        share = counts[row["key"].encode()] / 12_000
        assert row["isSampled"]
        assert row["ofRecords"]["low"] <= share <= row["ofRecords"]["high"]
    assert found.document()["hotKeys"][0]["key"] == "hot"
    # The same places, whenever it is asked.
    again = pylog.stats(tmp_path, read="sample", sample_bytes=2 << 20, most=3)
    assert again.document() | {"now": 0} == found.document() | {"now": 0}


def test_a_run_that_cannot_be_put_into_other_batches_is_left_out_of_the_ratios(
    tmp_path: Path,
) -> None:
    batches = [batch_v2(plain_records(at, 10, value_size=40_000)) for at in range(0, 100, 10)]
    batches[5] = batch_v2([Stored(50, -5, b"k", b"v")])
    write_partition(tmp_path, {0: batches})
    found = pylog.stats(tmp_path, read="sample", sample_bytes=8 << 20)
    assert ["cannot be put into other batches" in each for each in found.problems] == [True]
    ratios = {
        (row["codec"], row["batchSize"]): row["ratio"] for row in found.document()["recompression"]
    }
    assert ratios["none", None] == 1.0


def test_a_run_of_the_sample_that_is_damaged_is_left_out_and_named(tmp_path: Path) -> None:
    batches = [
        with_bad_crc(batch_v2(plain_records(at, 10, value_size=40_000))) for at in range(0, 100, 10)
    ]
    write_partition(tmp_path, {0: batches})
    found = pylog.stats(tmp_path, read="sample", sample_bytes=1 << 20)
    assert found.document()["hotKeys"] == []
    assert found.problems != []
    assert all("batch CRC stored" in problem for problem in found.problems)
