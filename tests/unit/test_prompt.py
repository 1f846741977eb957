"""What a prompt shows: short texts of results, names that are public, tables of a few records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest

import pylog
import pylog.duckdb
import pylog.polars
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

MODULES = [pylog, pylog.polars, pylog.duckdb, pylog.jobs, pylog.logs, pylog.results]
RECORDS = [
    Stored(0, 1, b"k", "größe".encode()),
    Stored(1, 1, None, b"\xff"),
    Stored(2, 1, b"", None),
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: [batch_v2(RECORDS)]})
    return tmp_path


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_module_lists_what_it_offers_and_nothing_that_it_imports(module: ModuleType) -> None:
    names = [name for name in dir(module) if not name.startswith("__")]
    namespaces = {each.__name__.rpartition(".")[2] for each in MODULES} | {"errors", "testing"}
    assert set(names) <= {*module.__all__, *namespaces}
    assert "annotations" not in names
    for name in names:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("verb", ["doctor", "list_partitions", "topics", "scan", "open_directory"])
def test_a_result_is_one_short_line(logs: Path, verb: str) -> None:
    for number in range(1, 40):
        write_partition(logs, {0: [batch_v2(RECORDS)]}, name=f"orders-{number}")
    result: Any = getattr(pylog, verb)(logs)
    assert len(repr(result)) < 600
    assert "\n" not in repr(result)
    assert repr(result).startswith(f"{type(result).__name__}(")


def test_a_report_begins_with_its_verdict(demo_copy: Path) -> None:
    report = pylog.doctor(demo_copy / "damaged")
    assert repr(report).startswith("DoctorReport(9 partitions, 3 errors, 1 warning, 3 info: 20 rec")
    summary = pylog.repair_copy(demo_copy / "damaged", demo_copy / "copy")
    assert repr(summary).endswith("bytes, 20 records lost, 0 not copied)")


@pytest.fixture
def demo_copy(tmp_path: Path) -> Path:
    pylog_demo = __import__("pylog.cli.commands.demo", fromlist=["demo"]).demo
    pylog_demo.callback(str(tmp_path / "kafka"))
    return tmp_path / "kafka"


def test_the_head_is_a_scan_of_the_first_records(logs: Path) -> None:
    head = pylog.scan(logs).head(2)
    assert head.to_table().column("offset").to_pylist() == [0, 1]
    assert pylog.scan(logs, limit=1).head(2).count() == 1
    assert pylog.scan(logs).head().count() == 3


def test_polars_gets_all_records(logs: Path) -> None:
    frame = pylog.scan(logs).to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame["value"].to_list() == ["größe".encode(), b"\xff", None]


def test_without_polars_the_extra_is_named(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError) as raised:
        pylog.scan(logs).to_polars()
    assert pylog.jobs.install_command("polars") in str(raised.value)


def test_pandas_gets_text_where_that_is_asked_for(logs: Path) -> None:
    plain = pylog.scan(logs).to_pandas()
    assert "value_text" not in plain
    frame = pylog.scan(logs).to_pandas(text=True)
    texts = frame["value_text"].astype(object).where(frame["value_text"].notna(), None)
    assert texts.tolist() == ["größe", None, None]
    assert frame["key_text"].tolist()[0] == "k"
    assert isinstance(frame, pd.DataFrame)
    assert "value_text" not in pylog.scan(logs, columns=["offset"]).to_pandas(text=True)
    valid = pylog.scan(logs).head(1).to_pandas(text=True)
    assert valid["value_text"].tolist() == ["größe"]
