from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.log_files import segment_path
from tests.unit.recovery.test_merge import diverged, log, replica

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


NOT_PROVEN = (
    "not proven that this is the last leader: a copy of the cluster's metadata would tell "
    "(--metadata)"
)


def test_a_complete_result_ends_with_0_and_says_what_came_from_where(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    ones = [replica(tmp_path / name, {0: log(0, 20), 20: log(20, 40)}) for name in "ab"]
    segment_path(ones[0], 20).unlink()
    done = pylog_run("merge", *ones, "--to", tmp_path / "out")
    assert done.status == 0, done.error
    assert done.lines == [
        f"orders-0: offsets 0 to 39, 1.2KiB; last leader: {ones[1]}, epoch 0 (not proven)",
        f"  offsets 0 to 39 from {ones[1]} (leader)",
        f"  note: {NOT_PROVEN}",
        f"1 partition written to {tmp_path}/out: complete",
    ]


def test_a_log_directory_is_chosen_from_by_topic_and_partition(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for name in ("orders-0", "orders-1", "users-0"):
        replica(tmp_path / "1", {0: log(0, 20)}, name=name)
    chosen = ["--topic", "orders", "--partition", "1"]
    done = pylog_run("merge", tmp_path / "1", "--to", tmp_path / "out", *chosen, "--json")
    assert done.status == 0
    document = json.loads(done.output)
    assert [(each["topic"], each["partition"]) for each in document["partitions"]] == [
        ("orders", 1)
    ]
    assert document["isComplete"]
    assert document["partitions"][0]["ranges"] == [
        {
            "startOffset": 0,
            "endOffset": 20,
            "source": str(tmp_path / "1/orders-1"),
            "rule": "leader",
        }
    ]


def test_gaps_end_with_1_and_are_listed_with_what_each_replica_has(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    one = replica(tmp_path / "1", {0: log(0, 20), 40: log(40, 60)})
    two = replica(tmp_path / "2", {0: log(0, 10)})
    done = pylog_run("merge", one, two, "--to", tmp_path / "out")
    assert done.status == 1
    at = done.lines.index("  missing: offsets 20 to 39")
    assert done.lines[at + 1 : at + 3] == [
        f"    {one}: nothing: no file has these offsets",
        f"    {two}: ends at offset 10",
    ]
    assert done.lines[-1] == f"1 partition written to {tmp_path}/out: 1 with gaps"


@pytest.mark.parametrize(
    ("files", "more"), [(11, []), (12, ["  and 2 more lines (--json has all)"])]
)
def test_of_many_gaps_some_are_listed(
    tmp_path: Path, files: int, more: list[str], pylog_run: Callable[..., Outcome]
) -> None:
    one = replica(tmp_path / "1", {20 * at: log(20 * at, 20 * at + 10) for at in range(files)})
    lines = pylog_run("merge", one, "--to", tmp_path / "out").lines
    assert sum(each.startswith("  missing: ") for each in lines) == 10  # of two lines each
    assert [each for each in lines if "more line" in each] == more


def test_an_undecided_divergence_ends_with_2_shows_both_and_writes_nothing(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    two = replica(tmp_path / "2", {0: log(0, 40, step=10)})
    done = pylog_run("merge", one, two, "--to", tmp_path / "out")
    assert done.status == 2
    assert not (tmp_path / "out").exists()
    for text in (str(one), str(two), "epoch 0", "offsets 0 to 39", "1970-01-01", "--prefer PATH"):
        assert text in done.error
    done = pylog_run("merge", one, two, "--to", tmp_path / "out", "--prefer", two)
    assert done.status == 0
    assert any("(preferred)" in line for line in done.lines)


def test_a_lost_marker_and_what_was_left_out_are_told(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("merge", *diverged(tmp_path), "--to", tmp_path / "out")
    assert done.status == 0
    assert any("offsets 45 to 75 of epoch 0 (31 records, " in each for each in done.lines)
    assert any("Its COMMIT marker was lost with its leader" in each for each in done.lines)


def test_a_dry_run_writes_nothing_and_wrong_usage_ends_with_2(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    done = pylog_run("merge", one, "--to", tmp_path / "out", "--dry-run")
    assert (done.status, done.lines[-1]) == (
        *(0, "1 partition, complete; nothing was written (--dry-run)"),
    )
    assert not (tmp_path / "out").exists()
    assert pylog_run("merge", one, "--to", tmp_path / "1").status == 2
    assert pylog_run("merge", one, "--to", tmp_path / "x", "--prefer", tmp_path / "1").status == 2
    assert pylog_run("merge", tmp_path / "none", "--to", tmp_path / "x").status == 2


@pytest.mark.parametrize(("until", "end"), [("17", 17), ("1970-01-01T00:00:01.002Z", 2)])
def test_a_time_or_an_offset_ends_it_and_what_is_left_out_is_counted(
    until: str, end: int, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    done = pylog_run("merge", one, "--to", tmp_path / "out", "--until", until)
    assert done.status == 0, done.error
    assert f"  ends before offset {end}: {40 - end} records left out" in done.lines
    again = pylog_run("merge", one, "--to", tmp_path / "x", "--until", until, "--json")
    (document,) = json.loads(again.output)["partitions"]
    assert document["cut"]["endOffset"] == document["endOffset"] == end
    assert pylog_run("merge", one, "--to", tmp_path / "y", "--until", "soon").status == 2


def test_a_lost_marker_is_appended_on_demand(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("merge", *diverged(tmp_path), "--to", tmp_path / "out", "--append-markers")
    assert done.status == 0
    line = "  transaction of producer 1 from offset 40 on: COMMIT marker appended at offset 70"
    assert line in done.lines
