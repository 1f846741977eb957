from __future__ import annotations

import datetime as dt
import gzip
import shlex
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

import pylog
from pylog.cli.commands.demo import ARCHIVE
from tests.golden.pack_demo import demo_tar
from tests.support.log_files import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

CASE = "4.3.0/internal-logdir"


def findings_of(directory: Path) -> list[tuple[str, str, str]]:
    return [
        (str(each.topic_partition), finding.code, str(finding.severity))
        for each in pylog.doctor(directory).partitions
        for finding in each.findings
    ]


@pytest.fixture
def unpacked(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> Path:
    directory = tmp_path / "kafka logs"
    assert pylog_run("demo", directory).status == 0
    return directory


def test_the_archive_is_small_and_what_the_packer_makes() -> None:
    packed = ARCHIVE.read_bytes()
    assert len(packed) < 30_000
    assert gzip.decompress(packed) == demo_tar(), "run: python -m tests.golden.pack_demo"


def test_the_intact_directory_is_a_brokers(unpacked: Path, golden_root: GoldenRoot) -> None:
    case = tree(golden_root.case(CASE))
    found = tree(unpacked / "intact")
    assert {name for name in case if "/" in name} <= found.keys()
    assert {"meta.properties", ".kafka_cleanshutdown", "bootstrap.checkpoint"} <= found.keys()
    assert {name: len(data) for name, data in found.items()} == {
        name: len(case[name]) for name in found
    }
    assert findings_of(unpacked / "intact") == []


def test_all_times_of_the_intact_directory_are_of_some_minutes(
    unpacked: Path, golden_root: GoldenRoot
) -> None:
    directory = pylog.open_directory(unpacked / "intact")
    batches = pylog.read_table(directory, "batches", topics=directory.topics)
    times = pc.min_max(batches["max_timestamp"]).as_py()
    assert times["max"] - times["min"] < dt.timedelta(minutes=5)
    # Nothing but times is another: records, offsets, states and findings are those of the case.
    case = pylog.open_directory(golden_root.case(CASE))
    columns = ["topic", "partition", "offset", "timestamp", "key", "value"]
    for topic in ("orders", "invoices-eu"):
        tables = [
            pylog.scan(each, topics=topic).to_table().select(columns) for each in (directory, case)
        ]
        assert tables[0] == tables[1]
    moved, original = map(pylog.transactions, (unpacked / "intact", golden_root.case(CASE)))
    assert [each.state for each in moved.transactions] == [
        each.state for each in original.transactions
    ]
    (started,) = {each.started_ms for each in moved.transactions}
    assert started is not None
    times = pylog.scan(directory, timestamp_unit="ms").to_table()["timestamp"]
    last = pc.max(times.cast("int64")).as_py()
    assert 0 <= started - last < 60_000


def test_the_damaged_directory_has_one_damage_of_each_kind(unpacked: Path) -> None:
    found = findings_of(unpacked / "damaged")
    assert sorted(found) == [
        ("invoices-eu-0", "missing_index", "warning"),
        ("orders-0", "damaged_batches", "error"),
        ("orders-1", "high_watermark_above_log_end", "error"),
        ("orders-1", "torn_tail", "error"),
    ]


def test_the_files_can_be_changed(unpacked: Path, pylog_run: Callable[..., Outcome]) -> None:
    truncation = ("--topic", "orders", "--partition", 0, "--offset", 49)
    assert pylog_run("truncate", unpacked / "intact", *truncation).status == 0


def test_what_it_says_to_try_runs(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("demo", tmp_path / "kafka logs")
    head, tail = done.output.decode().split("\nTry:\n")
    assert head.count(str(tmp_path / "kafka logs")) == 2
    outcomes = [pylog_run(*shlex.split(line)[1:]) for line in tail.splitlines()]
    assert [outcome.status for outcome in outcomes] == [0, 0, 1]
    assert [len(outcome.lines) for outcome in outcomes[:2]] == [12, 5]


def test_an_empty_directory_is_filled(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    assert pylog_run("demo", tmp_path).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "intact"]


def test_a_directory_that_is_not_empty_is_left_alone(
    unpacked: Path, pylog_run: Callable[..., Outcome]
) -> None:
    before = tree(unpacked)
    done = pylog_run("demo", unpacked)
    assert (done.status, done.output) == (2, b"")
    assert done.error == (
        f"pylog: error: {unpacked}: the directory is not empty: name one that does not exist\n"
    )
    assert tree(unpacked) == before


def test_what_is_not_finished_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(ARCHIVE.read_bytes()[:5000])
    monkeypatch.setattr("pylog.cli.commands.demo.ARCHIVE", cut)
    done = pylog_run("demo", tmp_path / "new")
    assert (done.status, done.output) == (2, b"")
    assert done.error.endswith(f"; {tmp_path}/new is incomplete: remove it\n")
