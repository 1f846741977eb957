"""Table ``latest``: the last record of each key, at any offset and time, in bounded memory."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
import pylog.duckdb
import pylog.polars
from pylog.errors import CorruptRecordError
from pylog.model import LATEST
from pylog.tables.latest import latest_records
from tests.support.batches import ABORT, COMMIT, Stored, batch_v2, marker, message, wrapper
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 3_000
KEYS = 400
SEED = 35

Rows = dict[bytes, tuple[int, bytes]]


def written(directory: Path) -> list[tuple[bytes | None, bytes | None]]:
    """Write records of few keys, some without a key, some tombstones, one a millisecond."""
    chance = random.Random(SEED)
    records = [
        (
            None if chance.random() < 0.02 else b"key %d" % chance.randrange(KEYS),
            None if chance.random() < 0.2 else b"value %d" % number,
        )
        for number in range(RECORDS)
    ]
    keys, values = zip(*records, strict=True)
    pylog.write_topic(
        directory,
        "orders",
        pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp": pa.array(range(1, RECORDS + 1), pa.timestamp("ms", "UTC")),
            }
        ),
        timestamp="timestamp",
        batch_size=2_000,
        config={"segment.bytes": "20000"},
    )
    return records


def expected(records: list[tuple[bytes | None, bytes | None]], end: int = RECORDS) -> Rows:
    last = {key: (offset, value) for offset, (key, value) in enumerate(records[:end]) if key}
    return {key: (offset, value) for key, (offset, value) in last.items() if value is not None}


def rows(table: pa.Table) -> Rows:
    found = {row["key"]: (row["offset"], row["value"]) for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


@pytest.mark.parametrize("end", [0, 1, 2, 777, 1_500, RECORDS])
def test_the_state_at_any_offset_is_that_of_the_records_before_it(tmp_path: Path, end: int) -> None:
    records = written(tmp_path)
    table = pylog.read_table(tmp_path, "latest", end=end)
    assert rows(table) == expected(records, end)
    assert table["offset"].to_pylist() == sorted(table["offset"].to_pylist())


def test_the_state_at_a_time_is_that_of_the_records_before_it(tmp_path: Path) -> None:
    records = written(tmp_path)
    at = pylog.Timestamp(1_234)
    assert rows(pylog.read_table(tmp_path, "latest", end=at)) == expected(records, 1_233)


def test_more_keys_than_the_map_has_room_for_are_found_share_by_share(tmp_path: Path) -> None:
    records = written(tmp_path)
    [view] = pylog.open_directory(tmp_path).select()
    batches = list(latest_records(view, map_bytes=24 * 50))
    assert len(batches) > KEYS // 50
    assert rows(pa.Table.from_batches(batches)) == expected(records)


def test_duckdb_and_polars_have_it(tmp_path: Path) -> None:
    records = written(tmp_path)
    of_duckdb = pylog.duckdb.connect(tmp_path, end=777).sql(
        """SELECT key, "offset", value FROM latest WHERE "offset" >= 500"""
    )
    wanted = {key: row for key, row in expected(records, 777).items() if row[0] >= 500}
    assert {key: (offset, value) for key, offset, value in of_duckdb.fetchall()} == wanted
    frame = pylog.polars.table(tmp_path, "latest", end=777)
    assert rows(frame.collect().to_arrow()) == expected(records, 777)


def test_aborted_and_open_transactions_do_not_count(tmp_path: Path) -> None:
    def batch(offset: int, value: bytes, producer_id: int) -> Any:  # noqa: ANN401 - of batch_v2
        return batch_v2(
            [Stored(offset, 1, b"key", value)], producer_id=producer_id, is_transactional=True
        )

    write_partition(
        tmp_path,
        {
            0: [
                batch(0, b"committed", 7),
                marker(1, COMMIT, producer_id=7),
                batch(2, b"aborted", 8),
                marker(3, ABORT, producer_id=8),
                batch(4, b"open", 9),
                batch_v2([Stored(5, 1, b"key", b"behind the open one")]),
            ]
        },
    )
    assert rows(pylog.read_table(tmp_path, "latest")) == {b"key": (0, b"committed")}


def test_old_formats_are_cut_inside_of_a_wrapper(tmp_path: Path) -> None:
    inner = [Stored(offset, 1, b"key", b"%d" % offset) for offset in range(4)]
    write_partition(
        tmp_path,
        {0: [wrapper(inner, magic=1, codec="gzip"), message(Stored(4, 1, b"key", b"4"), magic=1)]},
    )
    assert rows(pylog.read_table(tmp_path, "latest", end=2)) == {b"key": (1, b"1")}
    assert rows(pylog.read_table(tmp_path, "latest")) == {b"key": (4, b"4")}


def test_damage_is_an_error_or_left_out(tmp_path: Path) -> None:
    batches = [batch_v2([Stored(offset, 1, b"key", b"%d" % offset)]) for offset in range(3)]
    path = segment_path(write_partition(tmp_path, {0: batches}), 0)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptRecordError, match=str(path)):
        pylog.read_table(tmp_path, "latest")
    found = pylog.read_table(tmp_path, "latest", mode="DROPMALFORMED")
    assert rows(found) == {b"key": (1, b"1")}


def test_other_tables_have_no_end(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(ValueError, match="end is for table 'latest', table 'segments' is about"):
        pylog.read_table(tmp_path, "segments", end=5)
    assert pylog.read_table(tmp_path, "segments", end=LATEST).num_rows > 1
