from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import group_records
from tests.support.batches import batch_v2, joined, plain_records, with_bad_crc
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    write_high_watermarks,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import partition_record, topic_record, write_metadata_log
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Outcome

BATCHES = [batch_v2(plain_records(o, 5)) for o in (0, 5, 10)]
SIZE = len(BATCHES[0].data)
TOTAL = len(joined(BATCHES))
LEFT = TOTAL - len(BATCHES[1].data)


STARTS = "A broker starts, and loses nothing"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", {0: BATCHES})
    return tmp_path / "logs"


@pytest.fixture
def damaged(sound: Path) -> Path:
    path = segment_path(sound / "orders-0", 0)
    path.write_bytes(joined([BATCHES[0], with_bad_crc(BATCHES[1]), BATCHES[2]]))
    return sound


def test_a_sound_directory(sound: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("doctor", sound)
    assert done.status == 0
    assert done.lines[:2] == [STARTS, ""]
    assert done.lines[2] == f"1 topic, 1 partition, {TOTAL}B of {TOTAL}B intact, nothing found"
    assert done.lines[3].startswith(f"{sound} was not shut down cleanly, or is in use: a broker ")
    assert len(done.lines) == 4
    assert done.error == ""


def test_a_damaged_one(damaged: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("doctor", damaged)
    assert done.status == 1
    assert done.lines[0].startswith(
        "A broker that starts on this loses records: orders-0: all records from offset 5 on, "
        "deleted at the start (after 1970-01-01T00:00:01.004Z, before 1970-01-01T00:00:01.005Z): "
        "a broker cuts "
    )
    assert done.lines[1] == f"pylog doctor {damaged} --repair-to DIR copies all that is intact."
    lines = done.lines[2:]
    assert lines[:2] == ["", "error     damaged_batches"]
    assert lines[2].startswith(
        f"    orders-0/00000000000000000000.log bytes {SIZE} to {SIZE + TOTAL - LEFT - 1}, "
        "offsets 5 to 9: "
    )
    assert lines[3] == f"    broker  it cuts the file off at byte {SIZE}"
    assert lines[4].startswith("    advice  read another replica")
    assert lines[5:8] == [
        "",
        f"orders-0  {damaged}/orders-0",
        "    offsets 0 to 14: 10 records, 5 damaged",
    ]
    assert lines[8] == (
        f"    start   a broker cuts 00000000000000000000.log off at byte {SIZE}: {TOTAL - SIZE} "
        "bytes are lost; the log ends at offset 5 then, not 15"
    )


def test_as_json(damaged: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("doctor", damaged, "--json")
    assert done.status == 1
    document = json.loads(done.output)
    assert document["summary"] == {
        "partitions": 1,
        "sizeInBytes": TOTAL,
        "soundBytes": LEFT,
        "errors": 1,
        "warnings": 0,
        "infos": 0,
    }
    [partition] = document["partitions"]
    [finding] = partition["findings"]
    assert (finding["code"], finding["position"], finding["nextOffset"]) == (
        "damaged_batches",
        SIZE,
        5,
    )
    assert partition["brokerStart"]["cutOffset"] == 5
    identity = {"clusterId": None, "nodeId": None, "directoryId": None}
    assert document["directories"] == [
        {"path": str(damaged), "cleanShutdown": False, "findings": [], **identity}
    ]
    lost = {"topic": "orders", "partition": 0}
    verdict = document["verdict"]
    assert verdict["wouldStart"] is True
    [cut] = verdict["losesRecords"]
    assert {**cut, **lost, "from": 5, "to": None, "fromTime": 1004, "toTime": 1005} == cut
    [gone] = verdict["lostAlready"]
    assert {**gone, **lost, "from": 5, "to": 10, "fromTime": None, "toTime": None} == gone
    assert [verdict[each] for each in ("consumers", "strayPartitions")] == [[], []]
    assert len(verdict["reasons"]) == 1
    assert document["clusters"] == [{"clusterId": None, "verdict": verdict}]


def test_less_severe_findings_are_counted_and_not_shown(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    with segment_path(sound / "orders-0", 0).open("ab") as file:
        file.write(bytes(30))
    done = pylog_run("doctor", sound, "--severity", "warning")
    assert done.status == 0
    assert done.lines[2].endswith("intact, 1 info")
    assert done.lines[-1] == "1 finding below --severity warning not shown"
    assert json.loads(pylog_run("doctor", sound, "--json").output)["summary"]["infos"] == 1


def leftovers(logs: Path, number: int, name: str = "orders-0") -> None:
    """Leave files in a partition, each of which is a finding of info."""
    for base in range(100, 100 + number):
        segment_path(logs / name, base, ".index.deleted").write_bytes(b"")


def test_of_info_there_is_a_line_for_each_kind(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(sound, {0: BATCHES}, name="orders-1")
    leftovers(sound, 5)
    leftovers(sound, 1, "orders-1")
    done = pylog_run("doctor", sound)
    assert done.lines[2:5] == [
        "info      leftover_file, 6 times in 2 directories",
        "  Use --verbose for details.",
        "",
    ]
    assert len([line for line in done.lines if "leftover" in line]) == 1


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_verbose_tells_of_every_finding(
    sound: Path, pylog_run: Callable[..., Outcome], option: str
) -> None:
    leftovers(sound, 5)
    done = pylog_run("doctor", sound, option)
    assert done.lines[2] == "info      leftover_file, 5 times"
    places = [line.split(":")[0] for line in done.lines[3:8]]
    assert places == [f"    orders-0/{base:020}.index.deleted" for base in range(100, 105)]
    assert done.lines[8].startswith("    broker  ")
    assert "--verbose" not in done.output.decode()


def test_json_is_the_same_with_verbose(sound: Path, pylog_run: Callable[..., Outcome]) -> None:
    leftovers(sound, 5)
    brief = pylog_run("doctor", sound, "--json").output
    assert brief == pylog_run("doctor", sound, "--json", "--verbose").output
    assert brief.count(b'"leftover_file"') == 5


def test_the_worst_comes_first_and_advice_once_however_many_partitions(
    damaged: Path, pylog_run: Callable[..., Outcome]
) -> None:
    content = segment_path(damaged / "orders-0", 0).read_bytes()
    write_partition(damaged, {0: BATCHES}, name="orders-1")
    segment_path(damaged / "orders-1", 0).write_bytes(content)
    write_partition(damaged, {0: BATCHES}, name="aside-0")
    segment_path(damaged / "aside-0", 0, ".index").write_bytes(b"\1" * 8)
    leftovers(damaged, 2, "aside-0")
    done = pylog_run("doctor", damaged)
    kinds = [line for line in done.lines if line.startswith(("error ", "warning ", "info "))]
    assert kinds[0] == "error     damaged_batches, 2 times in 2 directories"
    severities = [line.split()[0] for line in kinds]
    assert list(dict.fromkeys(severities)) == ["error", "warning", "info"]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert done.output.count(b"    advice  read another replica") == 1
    at = done.lines.index(kinds[0])
    assert [line.split(" bytes ")[0] for line in done.lines[at + 1 : at + 3]] == [
        f"    orders-{number}/00000000000000000000.log" for number in (0, 1)
    ]


def test_of_many_places_of_a_kind_some_are_shown(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for number in range(30):
        write_partition(sound, {0: BATCHES}, name=f"many-{number}")
        segment_path(sound / f"many-{number}", 0, ".index").write_bytes(b"\1" * 5)
    done = pylog_run("doctor", sound)
    [heading] = [line for line in done.lines if line.startswith("warning ")]
    assert heading.endswith(", 30 times in 30 directories")
    at = done.lines.index(heading)
    places = [line for line in done.lines[at:] if line.startswith("    many-")]
    assert len(places) == 20
    assert done.lines[at + 21] == "    and 10 more, which --verbose lists"
    assert pylog_run("doctor", sound, "-v").output.count(b"\n    many-") == 30


def test_files_of_several_log_directories_have_whole_paths(
    damaged: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path / "other", {0: BATCHES}, name="orders-1")
    done = pylog_run("doctor", damaged, tmp_path / "other")
    log = f"{damaged}/orders-0/00000000000000000000.log"
    assert any(line.startswith(f"    {log} bytes ") for line in done.lines)


def test_a_repaired_copy(damaged: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("doctor", damaged, "--repair-to", tmp_path / "copy")
    assert done.status == 1
    assert done.lines[-4:] == [
        f"{tmp_path}/copy  a copy of what is intact: 1 partition, {LEFT}B",
        f"  orders-0: {TOTAL - LEFT} of {TOTAL} bytes were left out; ends at 15",
        "  orders-0: 5 records lost, offsets 5 to 9",
        "  the copy still has: offset_gap",
    ]
    assert b"--repair-to DIR" not in done.output  # that is what is being done
    again = pylog_run("doctor", damaged, "--repair-to", tmp_path / "copy")
    assert again.status == 2
    assert "not empty" in again.error


def test_nothing_that_can_be_read(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    (tmp_path / "orders-0").symlink_to(tmp_path / "a disk that is not mounted")
    done = pylog_run("doctor", tmp_path)
    assert done.status == 2
    assert "error     unreadable" in done.lines
    write_partition(tmp_path / "logs", {0: BATCHES}, name="orders-1")
    (tmp_path / "orders-0").rename(tmp_path / "logs" / "orders-0")
    done = pylog_run("doctor", tmp_path / "logs")
    advice = f"pylog doctor {tmp_path / 'logs'} --repair-to DIR copies all that is intact."
    assert (done.status, advice in done.lines) == (1, True)
    done = pylog_run("doctor", tmp_path / "logs", "--repair-to", tmp_path / "copy")
    assert done.status == 1
    assert "a copy of what is intact: 1 of 2 partitions, " in done.output.decode()
    assert "\n  orders-0: not copied, since it cannot be read (" in done.output.decode()


def test_several_partitions_are_chosen(sound: Path, pylog_run: Callable[..., Outcome]) -> None:
    for number in (1, 2):
        write_partition(sound, {0: BATCHES}, name=f"orders-{number}")
    done = pylog_run("doctor", sound, "--partition", "0", "--partition", "2")
    assert done.lines[2].startswith("1 topic, 2 partitions, ")


@pytest.mark.parametrize("columns", [80, 140])
def test_lines_are_wrapped_at_the_width_of_a_terminal(damaged: Path, columns: int) -> None:
    output = in_terminal(columns, "doctor", damaged / "orders-0")
    assert "\x1b[31merror     \x1b[0mdamaged_batches" in output
    assert output.startswith("\x1b[1;31mA broker that starts on this loses records: ")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).split("\n")
    words = [word for line in lines for word in line.split()]
    assert max(map(len, lines)) <= max(columns, max(map(len, words)) + 20)
    assert any(line.startswith("            ") for line in lines) == (columns == 80)


def test_no_colours_if_so_wanted(damaged: Path) -> None:
    assert "\x1b" not in in_terminal(80, "doctor", damaged / "orders-0", NO_COLOR="1")
    assert "\x1b" not in in_terminal(80, "doctor", damaged / "orders-0", TERM="dumb")


def test_a_name_that_fills_the_line_stands_alone(sound: Path) -> None:
    name = "a-long-name." * 8
    log = write_partition(sound, {0: BATCHES}, name=f"{name}-0") / "00000000000000000000.log"
    log.write_bytes(log.read_bytes() + b"\xee" * 100)
    lines = in_terminal(80, "doctor", sound, NO_COLOR="1").splitlines()
    at = max(place for place, line in enumerate(lines) if line == f"{name}-0")
    assert lines[at + 1] == f"    {sound}/{name}-0"


def test_what_a_broker_cuts_off_is_told_from_records_that_it_loses(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    log = sound / "orders-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes() + b"\xee" * 100)
    [headline, *_] = pylog_run("doctor", sound).lines
    assert headline.startswith(
        "Records are lost: orders-0: all records from offset 15 on, damaged "
        "(after 1970-01-01T00:00:01.004Z)"
    )


def test_nothing_is_said_of_a_start_where_a_log_cannot_be_opened(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    log = sound / "orders-0" / "00000000000000000000.log"
    log.unlink()
    log.symlink_to(sound / "a disk that is not mounted")
    done = pylog_run("doctor", sound)
    assert done.status == 2
    assert done.lines[0].startswith("What a broker would do to orders-0 is not known: link leads ")
    assert not [line for line in done.lines if line.startswith(("  offsets", "  start"))]


def test_a_partition_that_is_gone(
    sound: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_high_watermarks(sound, {("orders", 0): 15, ("clicks", 1): 150})
    mark_clean_shutdown(sound)
    done = pylog_run("doctor", sound, "--repair-to", tmp_path / "copy")
    assert done.status == 1
    nothing = "nothing is left to copy; according to checkpoints, it had offsets 0 to 149"
    assert done.lines[-1] == f"  clicks-1: {nothing}"
    done = pylog_run("doctor", sound, "--repair-to", tmp_path / "copied", "--json")
    assert json.loads(done.output)["copy"]["absent"] == [
        {"topic": "clicks", "partition": 1, "missing": [[0, 150]]}
    ]


def test_several_log_directories_are_copied_together(
    sound: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    other = tmp_path / "more"
    write_partition(other, {0: BATCHES}, name="clicks-0")
    done = pylog_run("doctor", sound, other, "--repair-to", tmp_path / "copy")
    assert done.status == 0
    assert f"{tmp_path / 'copy'}  a copy of what is intact: 2 partitions" in done.output.decode()
    names = sorted(each.name for each in (tmp_path / "copy").iterdir())
    assert names == sorted([sound.name, "more"])


def test_directories_of_several_clusters_are_told_apart(
    sound: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    other = tmp_path / "more"
    write_partition(other, {0: BATCHES}, name="clicks-0")
    write_meta_properties(other)
    lines = pylog_run("doctor", sound, other).lines
    at = lines.index(f"no cluster  {sound}")
    assert lines[at + 1] == STARTS
    assert f"cluster c  {other}" in lines


def test_the_user_of_the_broker_can_be_named(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    assert pylog_run("doctor", sound, "--as-user", "0").status == 0
    done = pylog_run("doctor", sound, "--as-user", "4000000")
    assert done.status == 1
    assert b"user uid 4000000 may" in done.output
    done = pylog_run("doctor", sound, "--as-user", "no such user")
    assert done.status == 2
    assert "is no user of this host" in done.error


def test_an_error_in_the_copy_counts(
    sound: Path,
    tmp_path: Path,
    pylog_run: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pylog_run("doctor", sound, "--repair-to", tmp_path / "copy").status == 0
    write_meta_properties(sound)
    write_topic_id(sound / "orders-0", "AAECAwQFBgcICQoLDA0ODw")
    write_metadata_log(sound, [topic_record("orders"), partition_record(0, 1, (1,))])
    monkeypatch.setattr("pylog.checks.repair._copy_log_directory_files", lambda *_: None)
    monkeypatch.setattr(
        "pylog.checks.repair.copy_metadata",
        lambda check, _, target, __: bool(
            shutil.copytree(check.view.directory.path, Path(target) / "__cluster_metadata-0")
        ),
    )
    done = pylog_run("doctor", sound, "--repair-to", tmp_path / "copied")
    assert done.lines[-1] == "  the copy still has: missing_meta_properties"
    assert done.status == 1


def test_log_directories_are_in_the_order_of_the_brokers_configuration(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    disks = [tmp_path / name for name in ("d1", "d2")]
    for disk in disks:
        disk.mkdir()
        write_meta_properties(disk)
        (disk / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    write_metadata_log(disks[0], [topic_record("orders")])
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={disks[0]},{disks[1]}\n")
    given = disks[::-1]
    assert b"misplaced_metadata_log" in pylog_run("doctor", *given).output
    done = pylog_run("doctor", *given, "--server-properties", properties)
    assert b"misplaced_metadata_log" not in done.output


def test_each_action_of_a_broker_is_printed_that_differs(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    """Of two segments, the recovery point lets one be scanned after a crash."""
    directory = write_partition(tmp_path, {0: BATCHES[:2], 10: BATCHES[2:]})
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 15\n")
    for base in (0, 10):
        (directory / f"{base:020d}.index").write_bytes(bytes.fromhex("0000000100000007"))
    lines = pylog_run("doctor", tmp_path).lines
    told = [line.removeprefix("    broker  ") for line in lines if line.startswith("    broker  ")]
    used = "it does not build the file again: fetches that use it fail, or begin at later records"
    built = "it scans the segment, and builds its indexes again"
    assert sorted(told) == [f"1 of 2: {used}", f"1 of 2: {built}"]


def test_the_age_of_committed_offsets_is_that_of_the_server_properties(
    sound: Path, pylog_run: Callable[..., Outcome]
) -> None:
    group_records.write_commits(sound, 0, group_records.commit("g", offset=3, at=1))
    done = pylog_run("doctor", sound, "--json")
    [expiring] = json.loads(done.output)["verdict"]["willExpire"]
    assert (expiring["topic"], expiring["from"], expiring["groups"]) == ("orders", 3, ["g"])
    properties = sound.parent / "server.properties"
    properties.write_text(f"log.dirs={sound}\noffsets.retention.minutes={2**31 - 1}\n")
    done = pylog_run("doctor", sound, "--json", "--server-properties", properties)
    assert json.loads(done.output)["verdict"]["willExpire"] == []
    assert done.status == 0
