"""What is exported, read back by other readers of these formats."""

from __future__ import annotations

import csv
import errno
import json
import stat
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import pylog
from pylog.errors import CorruptRecordError
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.unit.reading.typed_logs import write_orders

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [
    Stored(0, 1_700_000_000_000, b"k\xff", b"v", (("h", b"1"), ("n", None))),
    Stored(1, 1_700_000_000_001, None, b"", ()),
    Stored(2, -1, b"", None, ()),
]
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    write_partition(logs, {0: [batch_v2(RECORDS)]})
    write_partition(logs, {5: [batch_v2(plain_records(5, 2))]}, name="web-3")
    return logs


def scan(logs: Path, **arguments: Any) -> pylog.results.Scan:  # noqa: ANN401 - of pylog.scan
    chosen: dict[str, Any] = {"columns": COLUMNS, "timestamp_unit": "ms", **arguments}
    return pylog.scan(logs, **chosen)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_file())


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_parquet_and_arrow_have_the_columns_of_the_scan(
    logs: Path, tmp_path: Path, suffix: str, compression: str
) -> None:
    path = tmp_path / f"out{suffix}"
    [file] = pylog.export(scan(logs), path, compression=compression)
    assert (file.path, file.rows, file.size_bytes) == (str(path), 5, path.stat().st_size)
    table = (
        parquet.read_table(path)
        if suffix == ".parquet"
        else pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    )
    assert table.column_names == list(COLUMNS)
    assert table.column("offset").to_pylist() == [0, 1, 2, 5, 6]
    assert table.column("key").to_pylist()[:3] == [b"k\xff", None, b""]
    assert table.column("value").to_pylist()[:3] == [b"v", b"", None]
    headers = table.column("headers").to_pylist()
    assert headers[0] == [{"key": "h", "value": b"1"}, {"key": "n", "value": None}]


def test_csv_tells_null_from_empty(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    pylog.export(scan(logs, topics="orders"), path, values="base64")
    text = path.read_text()
    assert text.splitlines()[2].endswith('1,"2023-11-14 22:13:20.001Z",,"","[]"')
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == list(COLUMNS)
    assert rows[1][:3] == ["orders", "0", "0"]
    assert rows[1][4:] == ["a/8=", "dg==", '[["h","MQ=="],["n",null]]']


def test_csv_of_text_refuses_what_is_not_text(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    for columns, of in ((COLUMNS, "orders-0, offset 0,"), (("key", "value"), "a record")):
        with pytest.raises(ValueError, match=f"the key of {of} is not UTF-8.*--values base64"):
            pylog.export(scan(logs, topics="orders", columns=columns), path)
    assert names_in(tmp_path) == []
    pylog.export(scan(logs, topics="web"), path)
    assert [row[4] for row in csv.reader(path.read_text().splitlines())] == ["key", "k5", "k6"]


@pytest.mark.parametrize("values", ["base64", "text"])
def test_json_lines_are_those_that_are_printed(logs: Path, tmp_path: Path, values: str) -> None:
    path = tmp_path / "out.jsonl"
    columns = pylog.jobs.LineFormat.json().columns
    pylog.export(scan(logs, columns=columns), path, values=values)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["topic"], line["partition"], line["offset"]) for line in lines] == [
        *(("orders", 0, at) for at in range(3)),
        *(("web", 3, at) for at in (5, 6)),
    ]
    assert lines[3]["key"] == ("azU=" if values == "base64" else "k5")


def test_json_lines_need_all_columns(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON lines need all columns; the scan lacks batch, time"):
        pylog.export(scan(logs, columns=COLUMNS), tmp_path / "out.jsonl")


def test_a_file_has_a_column_at_least(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column to export"):
        pylog.export(scan(logs, columns=()), tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_each_topic_may_have_a_file_of_its_own(logs: Path, tmp_path: Path) -> None:
    files = pylog.export(scan(logs), tmp_path / "{topic}-all.parquet")
    assert [(file.path, file.rows) for file in files] == [
        (str(tmp_path / "orders-all.parquet"), 3),
        (str(tmp_path / "web-all.parquet"), 2),
    ]
    read = parquet.read_table(tmp_path / "web-all.parquet")
    assert read.column("partition").to_pylist() == [3, 3]


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="the file exists"):
        pylog.export(scan(logs), path)
    assert path.read_text() == "mine"
    pylog.export(scan(logs), path, values="base64", overwrite=True)
    assert path.read_text().startswith('"topic"')


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_damage_leaves_no_file_or_what_was_there(tmp_path: Path, suffix: str) -> None:
    logs = tmp_path / "logs"
    write_partition(logs, {0: [batch_v2(RECORDS), with_bad_crc(batch_v2(plain_records(3, 2)))]})
    with pytest.raises(CorruptRecordError):
        pylog.export(scan(logs), tmp_path / f"out{suffix}", values="base64")
    assert names_in(tmp_path) == []
    other = scan(logs, mode="DROPMALFORMED")
    [file] = pylog.export(other, tmp_path / f"out{suffix}", values="base64")
    assert (file.rows, len(other.damage)) == (3, 1)


def test_a_log_without_records_becomes_a_file_without_rows(tmp_path: Path) -> None:
    write_partition(tmp_path / "logs", {0: []})
    [file] = pylog.export(scan(tmp_path / "logs"), tmp_path / "out.parquet")
    assert file.rows == 0
    assert parquet.read_table(tmp_path / "out.parquet").column_names == list(COLUMNS)


def test_many_small_batches_share_a_row_group(tmp_path: Path) -> None:
    segments = {at: [batch_v2(plain_records(at, 5))] for at in range(0, 100, 5)}
    write_partition(tmp_path / "logs", segments)
    pylog.export(scan(tmp_path / "logs"), tmp_path / "out.parquet")
    assert parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups == 1


def test_a_new_file_may_be_read_by_those_who_may_read_any_new_file(
    logs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.touch()
    pylog.export(scan(logs, topics="web"), tmp_path / "out.csv")
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.parametrize(
    ("to", "arguments", "message"),
    [
        ("out.txt", {}, "ends in .txt, expected one of .parquet, .arrow, .csv, .jsonl"),
        ("out", {}, "ends in nothing, expected"),
        ("s3://bucket/out.csv", {}, "is not a local path"),
        ("out.csv", {"values": "hex"}, "values is 'hex', expected one of text, base64"),
        ("out.parquet", {"compression": "lzo"}, "compression is 'lzo', expected one of zstd"),
    ],
)
def test_what_makes_no_sense_is_refused(
    logs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    to: str,
    arguments: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        pylog.export(scan(logs), to, **arguments)
    assert names_in(tmp_path) == []


def test_a_directory_that_is_not_there_is_named(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such directory to write to") as raised:
        pylog.export(scan(logs), tmp_path / "nowhere" / "out.csv")
    assert raised.value.filename == str(tmp_path / "nowhere")


def test_csv_refuses_the_column_of_batches(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="CSV cannot hold the column 'batch'"):
        pylog.export(scan(logs, columns=("offset", "batch")), tmp_path / "out.csv")


def test_a_disk_that_is_full_is_an_error_about_the_file(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "a text of Arrow's own")

    monkeypatch.setattr("os.fsync", full)
    path = tmp_path / "out.csv"
    with pytest.raises(OSError, match="No space left on device") as raised:
        pylog.export(scan(logs, topics="web"), path)
    assert raised.value.filename == str(path)
    assert names_in(tmp_path) == []


def test_a_file_that_cannot_be_made_is_called_by_its_own_name(logs: Path) -> None:
    with pytest.raises(OSError, match=r"'/proc/out\.csv'"):
        pylog.export(scan(logs), "/proc/out.csv")


def typed_orders(tmp_path: Path) -> pylog.results.Scan:
    logs = write_orders(tmp_path / "typed")
    columns = pylog.jobs.LineFormat.json().columns
    return scan(logs, topics="orders", columns=columns, value_format="auto")


def test_typed_values_are_json_in_lines_and_in_csv(tmp_path: Path) -> None:
    records = typed_orders(tmp_path).narrowed(COLUMNS)
    pylog.export(typed_orders(tmp_path), tmp_path / "o.jsonl")
    pylog.export(records, tmp_path / "o.csv")
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text("utf-8").splitlines()]
    values = [{"id": 1, "note": ""}, None, {"id": 2, "note": "x"}]
    assert [(each["values"], each["value"]) for each in lines] == [("typed", v) for v in values]
    with (tmp_path / "o.csv").open(newline="", encoding="utf-8") as file:
        rows = [row["value"] for row in csv.DictReader(file)]
    assert [json.loads(row) if row else None for row in rows] == values


def test_typed_values_are_a_struct_in_parquet(tmp_path: Path) -> None:
    pylog.export(typed_orders(tmp_path).narrowed(COLUMNS), tmp_path / "o.parquet")
    assert parquet.read_table(tmp_path / "o.parquet").column("value").to_pylist() == [
        {"id": 1, "note": ""},
        None,
        {"id": 2, "note": "x"},
    ]


def test_typed_values_are_not_masked(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[mask]]\njson_path = ["$.note"]\nreplace = "***"')
    masking = pylog.jobs.read_mask_rules(rules)
    with pytest.raises(ValueError, match="a scan with typed values cannot be masked"):
        pylog.export(typed_orders(tmp_path), tmp_path / "o.jsonl", masking=masking)
