from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet

from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", {0: [batch_v2(plain_records(0, 20))]})
    return tmp_path / "logs"


def test_a_file_is_written_and_told_of(
    logs: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = tmp_path / "orders.parquet"
    done = pylog_run("export", logs, "--to", path, "--start-offset", 5)
    assert (done.status, done.error) == (0, "")
    assert done.lines[0].startswith(f"{path}: 15 records, ")
    table = parquet.read_table(path)
    assert table.column("offset").to_pylist() == list(range(5, 20))
    assert "batch" not in table.column_names
    assert "headers" in table.column_names


def test_columns_may_be_chosen(
    logs: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = tmp_path / "orders.csv"
    done = pylog_run(
        "export",
        logs,
        "--to",
        path,
        "--columns",
        "offset,value",
        "--end-offset",
        1,
        "--values",
        "base64",
    )
    assert done.status == 0
    assert path.read_text().splitlines() == ['"offset","value"', '0,"AAAAAAAAAAAAAA=="']


def test_json_lines_are_those_of_cat(
    logs: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = tmp_path / "orders.jsonl"
    assert pylog_run("export", logs, "--to", path).status == 0
    assert path.read_bytes() == pylog_run("cat", logs).output


def test_the_summary_may_be_json(
    logs: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = tmp_path / "orders.arrow"
    done = pylog_run("export", logs, "--to", path, "--json")
    size_bytes = path.stat().st_size
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "files": [{"path": str(path), "records": 20, "sizeInBytes": size_bytes}],
        "damagedRanges": 0,
    }


def test_a_file_that_is_there_is_an_error_of_one_line(
    logs: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("mine")
    done = pylog_run("export", logs, "--to", path)
    assert done.status == 2
    assert done.error.startswith(f"pylog: error: {path}: the file exists")
    assert pylog_run("export", logs, "--to", path, "--overwrite").status == 0


def test_damage_ends_with_status_1(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    write_partition(tmp_path / "logs", {0: batches})
    path = tmp_path / "out.csv"
    done = pylog_run("export", tmp_path / "logs", "--to", path)
    assert (done.status, path.exists()) == (1, False)
    assert done.error.endswith("is damaged, and names it on stderr\n")
    done = pylog_run("export", tmp_path / "logs", "--to", path, "--mode", "DROPMALFORMED")
    assert (done.status, done.lines[0].startswith(f"{path}: 5 records")) == (1, True)
