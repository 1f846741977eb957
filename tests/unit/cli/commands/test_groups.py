from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from pylog.cli.main import run
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.admin.test_consumer_groups import commit_key, commit_value
from tests.unit.cli.test_progress import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

CASE = "4.3.0/internal-logdir"
MEMBER = "member-grp-member-c656a42a-3091-4c4d-9729-1a560e6cc6b8"


def test_offsets_have_the_columns_of_kafkas_tool(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("groups", golden_root.case(CASE), "--group", "grp-late")
    assert (done.status, done.error) == (0, "")
    assert [line.split() for line in done.lines] == [
        ["grp-late:", "classic,", "Empty,", "0", "members"],
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"],
        ["grp-late", "orders", "1", "9", "49", "40"],
        [],
        ["1", "group,", "in", "2", "partitions", "of", "__consumer_offsets"],
    ]


def test_the_table_of_a_share_group_leaves_out_columns_in_a_narrow_terminal(
    golden_root: GoldenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "dumb")
    case = golden_root.case("4.4.0/internal-logdir")
    assert run(["groups", str(case), "--group", "grp-sh2"]) == 0
    table = terminal.getvalue().splitlines()[1:-2]
    assert table[0].split() == ["TOPIC", "PARTITION", "START-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert max(map(len, table)) <= 60


def test_csv_is_what_kafkas_tool_reads_from_a_file(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("groups", golden_root.case(CASE), "--csv")
    assert done.lines == [
        "grp-late,orders,1,9",
        "grp-member,invoices-eu,0,39",
        "grp-member,invoices-eu,1,11",
    ]


def test_members_are_listed_with_what_they_are_assigned(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    arguments = ("--group", "grp-member", "--at", "1795220320290")
    done = pylog_run("groups", golden_root.case(CASE), *arguments, "--members")
    assert done.lines[0] == "grp-member: classic, Stable, 1 member, epoch 1, range"
    assert done.lines[2].split(maxsplit=5) == [
        *("grp-member", MEMBER, "-", "/127.0.0.1", "member-grp-member"),
        "orders-0, orders-1",
    ]
    done = pylog_run("groups", golden_root.case(CASE), *arguments)
    assert done.lines[1].split()[6:] == ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    assert done.lines[2].split()[5:] == ["13", MEMBER, "/127.0.0.1", "member-grp-member"]


def test_json_has_groups_members_and_offsets(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("groups", golden_root.case(CASE), "--group", "grp-late", "--json")
    (group,) = json.loads(done.output)["groups"]
    assert (group["groupId"], group["kind"], group["members"]) == ("grp-late", "classic", [])
    assert group["offsets"] == [
        {
            "topic": "orders",
            "partition": 1,
            "offset": 9,
            "leaderEpoch": 0,
            "metadata": "after expiry",
            "commitTimestamp": 1795220385864,
            "logStartOffset": 0,
            "logEndOffset": 49,
            "memberId": None,
            "isOfEarlierTopic": False,
            "lag": 40,
        }
    ]


def test_records_that_are_not_understood_are_a_finding(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    odd = batch_v2([Stored(0, 1, b"\x00\x63", b"x")])
    write_partition(tmp_path, {0: [odd]}, name="__consumer_offsets-0")
    done = pylog_run("groups", tmp_path)
    assert done.status == 1
    assert done.error.startswith("pylog: warning: 1 record of __consumer_offsets cannot be under")
    assert done.lines == ["0 groups, in 1 partition of __consumer_offsets"]


def test_records_that_brokers_ignore_are_a_note(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    share_partitions = Stored(0, 1, b"\x00\x09\x00\x01g", b"\x00\x00\x01\x00")  # of 4.0 alone
    write_partition(tmp_path, {0: [batch_v2([share_partitions])]}, name="__consumer_offsets-0")
    done = pylog_run("groups", tmp_path)
    assert done.status == 0
    assert done.error == (
        "pylog: note: 1 record of __consumer_offsets is of a type that Kafka does not have any "
        "more, and says nothing of groups: brokers ignore it, too\n"
    )
    assert json.loads(pylog_run("groups", tmp_path, "--json").output)["ignoredRecords"] == 1


def test_wrong_usage_and_a_directory_without_groups_are_told(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
    done = pylog_run("groups", tmp_path)
    assert done.status == 2
    assert "no partition of __consumer_offsets is here" in done.error
    done = pylog_run("groups", tmp_path, "--csv", "--json")
    assert done.status == 2
    assert "give one of --members, --csv and --json" in done.error


def test_no_position_and_an_earlier_topics_offset_are_shown_and_are_no_lines_of_csv(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    log = {500: [batch_v2(plain_records(500, 10))]}
    write_partition(tmp_path, log, name="orders-0")
    records = [
        Stored(at, 1000, commit_key(group, "orders", 0), commit_value(offset))
        for at, (group, offset) in enumerate((("a\r\nb", 505), ("none", -1), ("old", 20)))
    ]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="__consumer_offsets-0")
    shown = pylog_run("groups", tmp_path)
    (row,) = (line for line in shown.lines if line.startswith("none  "))
    assert row.split() == ["none", "orders", "0", "-", "510", "-"]
    assert (
        "old is at 20 in orders-0, which begins at 500: offsets 20 to 499 are gone" in shown.error
    )
    done = pylog_run("groups", tmp_path, "--csv")
    assert list(csv.reader(io.StringIO(done.output.decode(), newline=""))) == [
        ["a\r\nb", "orders", "0", "505"],
        ["old", "orders", "0", "20"],
    ]


def test_csv_in_a_terminal_has_no_escape_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = commit_key("a\x1b]0;title\x07", "orders", 0)
    commit = batch_v2([Stored(0, 1, key, commit_value(3))])
    write_partition(tmp_path, {0: [commit]}, name="__consumer_offsets-0")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    assert run(["groups", str(tmp_path), "--csv"]) == 0
    assert terminal.getvalue() == "a\\x1b]0;title\\x07,orders,0,3\n"
