from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.cli.main import run
from tests.support import group_records
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.admin.committed_offsets import commit_key, commit_value
from tests.unit.cli.conftest import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

CASE = "4.3.0/internal-logdir"
MEMBER = "member-grp-member-c656a42a-3091-4c4d-9729-1a560e6cc6b8"


@pytest.fixture
def forever(tmp_path: Path) -> tuple[str, str]:
    """Options with which no offset is too old, whatever the time is."""
    path = tmp_path / "server.properties"
    path.write_text(f"offsets.retention.minutes={2**31 - 1}\n")
    return "--server-properties", str(path)


def test_offsets_have_the_columns_of_kafkas_tool(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome], forever: tuple[str, str]
) -> None:
    done = pylog_run("groups", golden_root.case(CASE), "--group", "grp-late", *forever)
    assert (done.status, done.error) == (0, "")
    assert [line.split() for line in done.lines] == [
        ["grp-late:", "classic,", "Empty,", "0", "members"],
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"],
        ["grp-late", "orders", "1", "9", "49", "40"],
        [],
        ["1", "group,", "in", "2", "partitions", "of", "__consumer_offsets"],
    ]


def test_notes_come_after_the_table_where_one_file_has_both(golden_root: GoldenRoot) -> None:
    command = [sys.executable, "-m", "pylog", "groups", str(golden_root.case(CASE))]
    first, *_, last = subprocess.check_output(
        [*command, "--group", "grp-late"],
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    ).splitlines()
    assert first == "grp-late: classic, Empty, 0 members"
    assert last.startswith("pylog: note: will expire: grp-late in orders-1, ")


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
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome], forever: tuple[str, str]
) -> None:
    done = pylog_run("groups", golden_root.case(CASE), "--group", "grp-late", "--json", *forever)
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
            "willReset": False,
            "resetReason": None,
            "willExpire": False,
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
        "pylog: note: will reset: old at 20 in orders-0: the log starts at 500: offsets 20 to 499 "
        "are gone\n"
    ) in shown.error
    done = pylog_run("groups", tmp_path, "--csv")
    assert done.lines == ["old,orders,0,20"]


def test_no_id_of_a_group_becomes_another_line_of_csv(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    whole = ["a,b", 'a"b', "a\tb", " a", "a\x00b", "a\x7fb", "'a"]
    broken = ["a\nx,orders,0,7", "a\r\nb", "a\rb", "a\x0bb", "a\x85b", "a\u2028b", "\n"]
    records = [group_records.commit(group, offset=at) for at, group in enumerate([*whole, *broken])]
    batch = batch_v2(group_records.stored(records))
    write_partition(tmp_path, {0: [batch]}, name="__consumer_offsets-0")
    done = pylog_run("groups", tmp_path, "--csv")
    lines = done.output.decode().splitlines()
    assert len(lines) == len(whole)
    # As Kafka's tool reads them: each line by itself.
    assert {next(csv.reader([line]))[0] for line in lines} == set(whole)
    assert done.error.count("is not in --csv: its id has a line break") == len(broken)


def test_what_a_broker_will_not_keep_is_named_and_in_json(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]}, name="orders-0")
    commits = [
        group_records.commit("far", offset=9, at=1000),
        group_records.commit("fresh", offset=2, at=2**61),
        group_records.modern(group_records.CONSUMER, "back"),
        group_records.consumer_member("back", "orders"),
        group_records.commit("back", offset=1, at=1000),
        group_records.commit("back", "away", offset=1, at=1000),
    ]
    records = batch_v2(group_records.stored(commits))
    write_partition(tmp_path, {0: [records]}, name="__consumer_offsets-0")
    done = pylog_run("groups", tmp_path)
    assert done.status == 0
    by = "by offsets.retention.minutes"
    goes = "a broker deletes them soon after its start, unless they are committed anew before"
    may_go = "whether a broker deletes them depends on which members come back after its start"
    assert done.error.splitlines() == [
        f"pylog: note: will expire: back in away-0, {by}: {goes}",
        f"pylog: note: will expire: back in orders-0, {by}: {may_go}",
        "pylog: note: will reset: far at 9 in orders-0: the log ends at 5",
        f"pylog: note: will expire: far in orders-0, {by}: {goes}",
    ]
    document = json.loads(pylog_run("groups", tmp_path, "--json").output)
    assert [
        (group["groupId"], each["topic"], each["willReset"], each["willExpire"])
        for group in document["groups"]
        for each in group["offsets"]
    ] == [
        ("back", "away", None, True),
        ("back", "orders", False, None),
        ("far", "orders", True, True),
        ("fresh", "orders", False, False),
    ]


def test_a_partition_that_no_coordinator_loads_and_one_that_is_missing_are_told(
    tmp_path: Path, pylog_run: Callable[..., Outcome], forever: tuple[str, str]
) -> None:
    records = batch_v2(
        group_records.stored(
            [group_records.classic("g"), group_records.modern(group_records.SHARE, "g")]
        )
    )
    write_partition(tmp_path / "logs", {0: [records]}, name="__consumer_offsets-1")
    done = pylog_run("groups", tmp_path / "logs", *forever)
    assert done.status == 1
    missing, refused = done.error.splitlines()
    assert missing == (
        "pylog: note: 1 partition of __consumer_offsets is not here (0): groups in it are not known"
    )
    assert refused == (
        "pylog: warning: partition 1 of __consumer_offsets cannot be loaded by a broker of Kafka "
        "4.0 or later, so that none of its groups is available: the record at offset 1 is of a "
        "share group, and g is a classic group there"
    )
    document = json.loads(pylog_run("groups", tmp_path / "logs", "--json").output)
    assert document["missing"] == {"partitions": [0], "gone": [], "partitionCount": None}
    assert [each["groupKind"] for each in document["refused"]] == ["classic"]


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
