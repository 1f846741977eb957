"""Lazy frames over logs: what they give, and how much is read for it.

That the rows are right for any predicate is tests/property/test_query_tools.py.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

import pylog
import pylog.polars
from pylog.polars import _Source
from pylog.reading.scan import Scan
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.registry_records import schema, write_registry
from tests.unit.reading.typed_logs import FIRST, OF_USER, SECOND, write_orders, write_values

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.planned_bytes import ScannedBytes
    from tests.support.golden import GoldenRoot

RECORDS = 400
BATCH = 4
offset, partition = pl.col("offset"), pl.col("partition")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for number in range(3):
        batches = [
            batch_v2(plain_records(at, BATCH, timestamp=1_000 + at))
            for at in range(0, RECORDS, BATCH)
        ]
        write_partition(tmp_path, {0: batches}, name=f"t-{number}")
    return tmp_path


class Reads:
    """What Polars asked of scans, and how many bytes they looked through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.columns: list[str] = []
        self._scanned: ScannedBytes | None = None
        narrowed = Scan.narrowed

        def noted(scan: Scan, *arguments: object, **options: object) -> Scan:
            part = narrowed(scan, *arguments, **options)  # type: ignore[arg-type]
            self.columns = part.schema.names
            self._scanned = part.scanned
            return part

        monkeypatch.setattr(Scan, "narrowed", noted)

    def bytes_of(self, frame: pl.LazyFrame) -> int:
        """Collect a frame, and return how many bytes were looked through, of one scan."""
        before = 0 if self._scanned is None else self._scanned.size_bytes
        frame.collect()
        assert self._scanned is not None
        return self._scanned.size_bytes - before


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def test_a_frame_has_the_rows_and_columns_of_a_scan(golden_root: GoldenRoot) -> None:
    path = golden_root.partition("4.3.0/txn:payments-0").directory
    options = {"isolation": "read_committed", "include_headers": True}
    expected = pylog.scan(path, isolation="read_committed", include_headers=True).to_table()
    frame = pylog.polars.scan(path, **options)
    assert frame.collect_schema().names() == expected.column_names
    assert frame.collect_schema()["timestamp"] == pl.Datetime("us", "UTC")
    assert frame.collect().to_arrow().to_pylist() == expected.to_pylist()
    assert frame.collect(engine="streaming").height == expected.num_rows


def test_only_the_columns_of_a_query_are_decoded(directory: Path, reads: Reads) -> None:
    frame = pylog.polars.scan(directory)
    frame.select("offset", "topic").collect()
    assert set(reads.columns) == {"topic", "offset"}
    frame.filter(pl.col("key").is_null()).select("offset").collect()
    assert set(reads.columns) == {"offset", "key"}


def test_rows_are_counted_by_batch_headers(directory: Path, reads: Reads) -> None:
    write_partition(directory, {0: [with_bad_crc(batch_v2(plain_records(0, 5)))]}, name="u-0")
    frame = pylog.polars.scan(directory)
    count = frame.select(pl.len())
    assert count.collect().item() == 3 * RECORDS + 5
    assert reads.bytes_of(count) == 0
    by_topic = frame.group_by("topic").len().sort("topic").collect()
    assert by_topic.rows() == [("t", 3 * RECORDS), ("u", 5)]
    assert frame.head(7).select(pl.len()).collect().item() == 7
    whole = pylog.polars.scan(directory, mode="DROPMALFORMED").select(pl.len())
    assert whole.collect().item() == 3 * RECORDS


def test_predicates_decide_what_is_read(directory: Path, reads: Reads) -> None:
    frame = pylog.polars.scan(directory, window_bytes=300)
    whole = reads.bytes_of(frame)
    late = dt.datetime(1970, 1, 1, 0, 0, 1, 1_000 * (RECORDS - 4), tzinfo=dt.UTC)
    for predicate, share in (
        (partition == 1, 0.34),
        (partition.is_in([0, 2]), 0.67),
        (offset >= RECORDS - 4, 0.05),
        (offset.is_between(8, 11), 0.05),
        ((partition == 1) & (offset < 4) & (pl.col("key") != b"k2"), 0.02),
        (offset < 0, 0),
    ):
        assert reads.bytes_of(frame.filter(predicate)) <= share * whole, str(predicate)
    is_late = pl.col("timestamp") >= late
    # Nothing of these can be left out.
    for predicate in ((offset < 4) | (partition == 1), offset * 2 < 4, is_late):
        assert reads.bytes_of(frame.filter(predicate)) == whole, str(predicate)
    trusting = pylog.RecordFilter(trusts_batch_timestamps=True)
    trusted = pylog.polars.scan(directory, window_bytes=300, where=trusting)
    reads.bytes_of(trusted)
    assert reads.bytes_of(trusted.filter(is_late)) <= 0.05 * whole


def test_a_row_limit_ends_the_read(directory: Path, reads: Reads) -> None:
    frame = pylog.polars.scan(directory, window_bytes=300)
    whole = reads.bytes_of(frame)
    assert reads.bytes_of(frame.head(5)) < whole / 20
    # The limit is of the rows before the predicate.
    limited = frame.head(5).filter(offset >= 3)
    assert reads.bytes_of(limited) < whole / 20
    assert limited.collect()["offset"].to_list() == [3, 4]
    assert frame.filter(offset >= 3).head(2).collect()["offset"].to_list() == [3, 4]


def test_the_limit_of_the_scan_is_of_the_rows_before_the_predicate(directory: Path) -> None:
    frame = pylog.polars.scan(directory, limit=5).filter(offset >= 3)
    assert frame.collect()["offset"].to_list() == [3, 4]
    assert frame.head(1).collect()["offset"].to_list() == [3]


def test_the_first_of_a_sorted_frame_are_right(directory: Path) -> None:
    frame = pylog.polars.scan(directory)
    last = frame.filter(partition == 1).sort("offset", descending=True).head(2)
    assert last.collect()["offset"].to_list() == [RECORDS - 1, RECORDS - 2]


def test_a_frame_is_a_snapshot(tmp_path: Path) -> None:
    path = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 4))]})
    frame = pylog.polars.scan(path)
    assert frame.collect().height == 4
    with (path / f"{0:020}.log").open("ab") as log:
        log.write(batch_v2(plain_records(4, 4)).data)
    assert frame.filter(offset >= 2).collect().height == 2
    assert frame.join(frame, on="offset").collect().height == 4
    assert pylog.polars.scan(path).collect().height == 8


def test_a_time_of_no_zone_is_an_error_of_polars(directory: Path) -> None:
    naive = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the point
    with pytest.raises(pl.exceptions.PolarsError, match="Datetime"):
        pylog.polars.scan(directory).filter(pl.col("timestamp") >= naive).collect()


def test_damage_is_an_error_with_our_text_or_left_out(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    path = write_partition(tmp_path, {0: batches})
    with pytest.raises(Exception, match=r"0{20}\.log at byte .*: batch CRC stored 0x"):
        pylog.polars.scan(path).collect()
    assert pylog.polars.scan(path, mode="DROPMALFORMED").collect().height == 5
    assert pylog.polars.scan(path).head(5).collect().height == 5


def test_no_columns_are_as_many_rows_as_any(directory: Path) -> None:
    scan = pylog.scan(directory)
    source = _Source(scan, pl.DataFrame(scan.schema.empty_table()))
    assert sum(frame.height for frame in source([], None, None, None)) == 3 * RECORDS


def test_without_polars_the_extra_is_named() -> None:
    code = "import sys; sys.modules['polars'] = None; import pylog.polars"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith(
        f"ModuleNotFoundError: pylog.polars needs Polars: {pylog.jobs.install_command('polars')}\n"
    )


def test_a_typed_key_of_bytes_is_compared_without_its_prefix(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("t-key", 1, 1, '"bytes"')])
    write_values(tmp_path, "t-0", [b"v"], key=b"\0\0\0\0\x01abc")
    frame = pylog.polars.scan(tmp_path, topics="t", key_format="auto")
    assert frame.filter(pl.col("key") == b"abc").collect()["key"].to_list() == [b"abc"]


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    logs = write_orders(tmp_path)
    records = [
        Stored(0, 1_000, OF_USER, FIRST),
        Stored(1, 2_000, None, None),
        Stored(2, 3_000, OF_USER, SECOND),
        Stored(3, 4_000, b"text", FIRST),
    ]
    write_partition(logs, {0: [batch_v2(records)]}, name="orders-1")
    return logs


FIELD = pl.col("value").struct.field
PREDICATES = [
    FIELD("id") == 2,
    FIELD("id") != 1,
    FIELD("id").is_null(),
    FIELD("note").is_in(["x", ""]) & (pl.col("offset") > 0),
    (FIELD("id") > 1) | (pl.col("partition") == 1),
    ~(FIELD("id") > 1),
    pl.col("value").is_null(),
    pl.col("offset") % 2 == 0,
    FIELD("note").str.len_chars() == 1,
    pl.col("timestamp").dt.second() > 2,
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("number", range(len(PREDICATES)))
def test_predicates_on_fields_give_what_polars_keeps_of_all_rows(
    typed: Path, number: int, threads: int
) -> None:
    frame = pylog.polars.scan(typed, topics="orders", value_format="auto", threads=threads)
    predicate = PREDICATES[number]
    found = frame.filter(predicate).collect()
    assert found.equals(frame.collect().filter(predicate))
    assert frame.filter(predicate).select(pl.len()).collect().item() == found.height
    assert frame.filter(predicate).select("offset").collect().equals(found.select("offset"))


def test_other_columns_are_decoded_of_rows_that_pass_alone(typed: Path) -> None:
    formats = {"value_format": "auto", "key_format": "auto"}
    frame = pylog.polars.scan(typed, assign={"orders": [1]}, **formats)
    found = frame.filter(FIELD("id") == 2).select("offset", "key").collect()
    assert found.rows() == [(2, {"name": "ab"})]
    with pytest.raises(Exception, match="offset 3: the key cannot be decoded"):
        frame.filter(FIELD("id") == 1).select("offset", "key").collect()


def test_what_cannot_be_decoded_is_a_reason_that_can_be_looked_for(typed: Path) -> None:
    columns = ["offset", "key", "value", "_corrupt_record"]
    frame = pylog.polars.scan(
        *(typed,), assign={"orders": [1]}, key_format="auto", mode="PERMISSIVE", columns=columns
    )
    reasons = frame.filter(pl.col("_corrupt_record").is_not_null()).collect()
    assert reasons.get_column("offset").to_list() == [3]
    assert frame.filter(pl.col("key").is_null()).collect().get_column("offset").to_list() == [1, 3]
