from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.cli import output as record_output
from pylog.cli.commands import cat as following
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.golden import Holds, differences, golden_partitions, read_expected
from tests.support.log_files import segment_path, write_partition
from tests.support.mirror_records import heartbeat
from tests.unit.cli.commands.printed_records import partitions_and_offsets, records_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot, Isolation
    from tests.unit.cli.conftest import Outcome


@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
@pytest.mark.parametrize("partition_id", golden_partitions(Holds.EXACTLY))
@pytest.mark.thorough(one_in=3)
def test_cat_prints_what_kafka_served(
    partition_id: str,
    isolation: Isolation,
    golden_root: GoldenRoot,
    pylog_run: Callable[..., Outcome],
) -> None:
    partition = golden_root.partition(partition_id)
    path = partition.expected_path(isolation)
    assert path is not None
    found = records_of(
        pylog_run(
            "cat", partition.directory, "--isolation", f"read_{isolation}", "--values", "base64"
        )
    )
    assert {record.pop("values") for record in found} <= {"base64"}
    assert {(record.pop("topic"), record.pop("partition")) for record in found} <= {
        (partition.topic, partition.partition)
    }
    assert differences(read_expected(path), found) == []


def test_partitions_come_one_after_the_other(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory)
    assert partitions_and_offsets(done) == [(0, at) for at in range(20)] + [
        (1, at) for at in range(3, 23)
    ]


def test_many_rows_are_formatted_in_pieces(
    log_directory: Path, monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    whole = pylog_run("cat", log_directory).output
    monkeypatch.setattr(record_output, "BYTES_AT_ONCE", 1)
    assert pylog_run("cat", log_directory).output == whole


def test_limit_is_of_all_partitions_together(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--limit", 2)
    assert partitions_and_offsets(done) == [(0, 0), (0, 1)]
    done = pylog_run("cat", log_directory, "--start-offset", 18, "--limit", 4)
    assert partitions_and_offsets(done) == [(0, 18), (0, 19), (1, 18), (1, 19)]
    assert len(pylog_run("cat", log_directory, "--limit", 1_000).lines) == 40


def test_what_lies_after_the_limit_is_not_read(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    bad = with_bad_crc(batch_v2(plain_records(5, 5)))
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))], 5: [bad]})
    assert partitions_and_offsets(pylog_run("cat", directory, "--limit", 5)) == [
        (0, offset) for offset in range(5)
    ]
    assert pylog_run("cat", directory, "--limit", 6).status == 1


def test_last_is_of_each_partition(log_directory: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("cat", log_directory, "--last", 2)
    assert partitions_and_offsets(done) == [(0, 18), (0, 19), (1, 21), (1, 22)]
    done = pylog_run("cat", log_directory, "--last", 2, "--end-offset", 10, "--limit", 3)
    assert partitions_and_offsets(done) == [(0, 8), (0, 9), (1, 8)]


def test_keys_are_exact(log_directory: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("cat", log_directory, "--key", "k1", "--key", "k22", "--key", "k2")
    assert partitions_and_offsets(done) == [(0, 1), (0, 2), (1, 22)]
    assert pylog_run("cat", log_directory, "--key", "k").output == b""
    done = pylog_run("cat", log_directory, "--key", "k3", "--key", "k4", "--last", 1)
    assert partitions_and_offsets(done) == [(0, 4), (1, 4)]


def test_keys_are_the_bytes_of_their_argument(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    records = [Stored(0, 1, "é".encode(), b""), Stored(1, 1, b"\xff", b"")]
    directory = write_partition(tmp_path, {0: [batch_v2(records)]})
    assert partitions_and_offsets(pylog_run("cat", directory, "--key", "é")) == [(0, 0)]
    assert partitions_and_offsets(pylog_run("cat", directory, "--key", "\udcff")) == [(0, 1)]


def test_a_single_log_file_is_a_path(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(log_directory, {40: [batch_v2(plain_records(40, 2))]}, name="orders-0")
    done = pylog_run("cat", segment_path(log_directory / "orders-0", 40))
    assert partitions_and_offsets(done) == [(0, 40), (0, 41)]


def test_values_are_text_where_they_can_and_base64_on_request(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    records = [Stored(0, 1, b"k", "größe".encode()), Stored(1, 1, None, b"\xff")]
    directory = write_partition(tmp_path, {0: [batch_v2(records)]})
    done = pylog_run("cat", directory)
    found = records_of(done)
    assert [(record["key"], record["value"], record["values"]) for record in found] == [
        ("k", "größe", "text"),
        (None, {"base64": "/w=="}, "text"),
    ]
    assert pylog_run("cat", directory, "--values", "text").output == done.output
    encoded = records_of(pylog_run("cat", directory, "--values", "base64"))
    assert [(record["key"], record["value"], record["values"]) for record in encoded] == [
        ("aw==", "Z3LDtsOfZQ==", "base64"),
        (None, "/w==", "base64"),
    ]


def test_text_is_key_tab_value(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    records = [Stored(0, 1, b"a", b"1\n2"), Stored(1, 1, None, b""), Stored(2, 1, b"", None)]
    directory = write_partition(tmp_path, {0: [batch_v2(records)]})
    done = pylog_run("cat", directory, "--format", "text")
    assert done.lines == ["a\t1\\n2", "\\N\t", "\t\\N"]


def test_damage_ends_with_status_1_after_the_records_before_it(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    bad = with_bad_crc(batch_v2(plain_records(5, 5)))
    sound, damaged = [batch_v2(plain_records(0, 5))], [bad, batch_v2(plain_records(10, 5))]
    directory = write_partition(tmp_path, {0: sound, 5: damaged})
    done = pylog_run("cat", directory)
    assert done.status == 1
    assert [json.loads(line)["offset"] for line in done.lines] == [0, 1, 2, 3, 4]
    assert "batch CRC stored" in done.error
    assert "00000000000000000005.log at byte 0" in done.error
    assert done.error.endswith(
        "; --mode DROPMALFORMED leaves out exactly what is damaged, and names it on stderr\n"
    )
    assert done.error.count("\n") == 1
    assert "--mode DROPMALFORMED" in pylog_run("cat", directory, "--last", 7).error


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_damage_is_left_out_and_named_where_that_is_asked_for(
    tmp_path: Path, pylog_run: Callable[..., Outcome], mode: str
) -> None:
    bad = with_bad_crc(batch_v2(plain_records(5, 5)))
    sound, damaged = [batch_v2(plain_records(0, 5))], [bad, batch_v2(plain_records(10, 5))]
    directory = write_partition(tmp_path, {0: sound, 5: damaged})
    done = pylog_run("cat", directory, "--mode", mode)
    assert done.status == 1
    assert [json.loads(line)["offset"] for line in done.lines] == [*range(5), *range(10, 15)]
    assert done.error.startswith(f"pylog: warning: {directory}/00000000000000000005.log: bytes 0 ")
    assert "--mode" not in done.error
    assert "5 records may be missing, offsets 5 to 9: batch CRC" in done.error
    assert done.error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("--key", "none"), "40 offsets of 2 partitions were looked at"),
        (("--key", "none", "--partition", 1), "20 offsets of 1 partition were looked at"),
        (("--key", "none", "--last", 3), "40 offsets of 2 partitions were looked at"),
        (("--start-timestamp", "-2h"), "the range that was asked for is empty (2 partitions)"),
        (
            ("--start-offset", 5, "--end-offset", 5, "--format", "text"),
            "the range that was asked for is empty (2 partitions)",
        ),
    ],
)
def test_where_nothing_matches_a_note_says_what_was_looked_at(
    arguments: tuple[object, ...],
    note: str,
    log_directory: Path,
    pylog_run: Callable[..., Outcome],
) -> None:
    done = pylog_run("cat", log_directory, *arguments)
    assert (done.status, done.output) == (0, b"")
    assert done.error == f"pylog: note: no record matches: {note}\n"


def test_where_something_matches_there_is_no_note(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for arguments in (("--key", "k1"), ("--limit", 1), ("--start-offset", 19)):
        assert pylog_run("cat", log_directory, *arguments).error == ""


def test_an_empty_log_prints_nothing(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    directory = write_partition(tmp_path, {0: []})
    done = pylog_run("cat", directory)
    assert (done.status, done.output, done.error) == (0, b"", "")


def test_threads_do_not_change_what_is_printed(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    batches = [batch_v2(plain_records(3 * at, 3), codec="zstd") for at in range(50)]
    write_partition(tmp_path, {0: batches})
    done = pylog_run("cat", tmp_path, "--threads", "3")
    assert partitions_and_offsets(done) == [(0, offset) for offset in range(150)]
    assert done.output == pylog_run("cat", tmp_path, "--threads", "1").output


def test_a_wrong_number_of_threads_in_the_environment_is_named(
    tmp_path: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]})
    monkeypatch.setenv("PYLOG_NUM_THREADS", "many")
    done = pylog_run("cat", tmp_path)
    assert done.status == 2
    assert "PYLOG_NUM_THREADS is 'many', expected a number of threads, 1 or more" in done.error


def test_a_format_of_kcat_is_printed(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--last", 1, "-f", r"%t-%p@%o %T %k %S\n")
    assert done.lines == ["orders-0@19 1019 k19 10", "orders-1@22 5022 k22 10"]
    done = pylog_run("cat", log_directory, "-f", "%o", "--format", "text")
    assert (done.status, "-f is a format of its own" in done.error) == (2, True)


def test_partitions_may_be_merged_to_one_timeline(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for partition, stamps in enumerate([(10, 30, 20, 50), (20, 30, 40)]):
        records = [Stored(at, stamp, None, b"") for at, stamp in enumerate(stamps)]
        write_partition(tmp_path, {0: [batch_v2(records)]}, name=f"orders-{partition}")
    done = pylog_run("cat", tmp_path, "--merge")
    forwards = [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2), (0, 3)]
    assert partitions_and_offsets(done) == forwards
    text = pylog_run("cat", tmp_path, "--merge", "-f", r"%p/%o\n").lines
    assert text == [f"{partition}/{offset}" for partition, offset in forwards]
    done = pylog_run("cat", tmp_path, "--merge", "--reverse", "--limit", 4)
    assert partitions_and_offsets(done) == [(0, 3), (1, 2), (1, 1), (1, 0)]
    assert pylog_run("cat", tmp_path, "--reverse").status == 2


def test_records_of_several_topics_name_theirs_in_a_timeline(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for topic, stamp in (("b", 1), ("a", 2)):
        records = [Stored(0, stamp, None, b"")]
        write_partition(tmp_path, {0: [batch_v2(records)]}, name=f"{topic}-7")
    for values in ("base64", "text"):
        found = records_of(pylog_run("cat", tmp_path, "--merge", "--values", values))
        assert [(record["topic"], record["partition"]) for record in found] == [("b", 7), ("a", 7)]


def test_follow_prints_what_is_there_and_what_comes(
    log_directory: Path, monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    looks = iter(range(2))

    def append_meanwhile(_seconds: float) -> None:
        records = plain_records(23 + next(looks), 1)
        with segment_path(log_directory / "orders-1", 3).open("ab") as file:
            file.write(batch_v2(records).data)

    monkeypatch.setattr(following, "sleep", append_meanwhile)
    arguments = ("--start-offset", 22, "--partition", 1, "--limit", 3)
    done = pylog_run("cat", log_directory, "--follow", *arguments)
    assert partitions_and_offsets(done) == [(1, 22), (1, 23), (1, 24)]
    assert done.error == ""


def test_follow_waits_for_a_topic_that_is_not_there(
    log_directory: Path, monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    def make(_seconds: float) -> None:
        write_partition(log_directory, {0: [batch_v2(plain_records(0, 3))]}, name="web-0")

    monkeypatch.setattr(following, "sleep", make)
    done = pylog_run("cat", log_directory, "--follow", "--topic", "web", "--limit", 2)
    assert partitions_and_offsets(done) == [(0, 0), (0, 1)]
    assert done.error == "pylog: note: nothing to print is there yet; waiting for it\n"


def test_follow_ends_at_damage_with_status_1(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    with segment_path(log_directory / "orders-0", 0).open("ab") as file:
        file.write(with_bad_crc(batch_v2(plain_records(20, 2))).data)
    done = pylog_run("cat", log_directory, "--follow")
    assert done.status == 1
    assert "batch CRC" in done.error


def test_follow_goes_on_after_damage_where_that_is_asked_for(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    with segment_path(log_directory / "orders-0", 0).open("ab") as file:
        file.write(with_bad_crc(batch_v2(plain_records(20, 2))).data)
        file.write(batch_v2(plain_records(22, 1)).data)
    arguments = ("--follow", "--partition", 0, "--start-offset", 19, "--limit", 2)
    done = pylog_run("cat", log_directory, *arguments, "--mode", "DROPMALFORMED")
    assert done.status == 1
    assert [json.loads(line)["offset"] for line in done.lines] == [19, 22]
    assert "2 records may be missing, offsets 20 to 21" in done.error


def test_a_records_own_timestamp_filters_where_a_look_up_does_not(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    times = [1_000, 9_000, 2_000, -1, 8_000, 3_000]
    batches = [batch_v2([Stored(at, time, b"k%d" % at, b"v")]) for at, time in enumerate(times)]
    write_partition(tmp_path / "logs", {0: batches})

    def offsets(*options: str) -> list[int]:
        return [
            each["offset"] for each in records_of(pylog_run("cat", tmp_path / "logs", *options))
        ]

    assert offsets("--start-timestamp", "2000") == [1, 2, 3, 4, 5]
    assert offsets("--min-timestamp", "2000") == [1, 2, 4, 5]
    assert offsets("--max-timestamp", "3000") == [0, 2, 5]
    assert offsets("--min-timestamp", "2000", "--max-timestamp", "8000", "--key", "k4") == [4]
    target = tmp_path / "out.jsonl"
    done = pylog_run(
        *("export", tmp_path / "logs", "--to", target),
        *("--min-timestamp", "2000", "--max-timestamp", "8000"),
    )
    assert done.status == 0
    lines = target.read_text("utf-8").splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [2, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        (["-o", "beginning"], [*range(20), *range(3, 23)]),
        (["-o", "end"], []),
        (["-o", "15"], [*range(15, 20), *range(15, 23)]),
        (["-o", "-2"], [18, 19, 21, 22]),
        (["-o-2"], [18, 19, 21, 22]),
        (["-o", "-0"], []),
        (["-o", "-1000"], [*range(20), *range(3, 23)]),
        (["-o", "-9223372036854775807", "-p", "1", "-c", "2"], [3, 4]),
        (["-t", "orders", "-p", "1", "-o", "-2", "-c", "1"], [21]),
        (["-o", "-2", "--end-offset", "19", "-p", "0"], [18]),
    ],
)
def test_the_options_of_kcat(
    log_directory: Path,
    pylog_run: Callable[..., Outcome],
    arguments: list[str],
    offsets: list[int],
) -> None:
    write_partition(log_directory, {0: [batch_v2(plain_records(0, 5))]}, name="aside-0")
    done = pylog_run("cat", log_directory, "-t", "orders", *arguments, "-f", r"%o\n")
    assert done.status == 0
    assert [int(line) for line in done.lines] == offsets


@pytest.mark.parametrize("options", [(), ("--format", "text"), ("--values", "base64")])
def test_the_first_lines_wait_for_no_module_that_they_do_without(
    log_directory: Path, options: tuple[str, ...]
) -> None:
    # These took half as long to import as Arrow and NumPy.
    script = (
        "import sys; from pylog.cli.main import run; status = run(sys.argv[1:])\n"
        "heavy = {'pyarrow.compute', 'importlib.metadata', 'tempfile', 'pandas', 'numba'}\n"
        "sys.exit(status or ', '.join(heavy & sys.modules.keys()) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "cat", str(log_directory), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_formatter_of_kafka_says_what_is_printed(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    records = [heartbeat("a", "b", 7), (b"k", b"v"), heartbeat("a", "b", 8)]
    stored = [Stored(offset, 5, *each) for offset, each in enumerate(records)]
    write_partition(tmp_path, {0: [batch_v2(stored)]}, name="heartbeats-0")
    command = ("cat", tmp_path, "--formatter", "mm2-heartbeats")
    failed = pylog_run(*command)
    assert (failed.status, len(failed.lines)) == (1, 1)
    assert "is no heartbeat of MirrorMaker 2" in failed.error
    left = pylog_run(*command, "--mode", "DROPMALFORMED")
    assert left.status == 1
    assert left.lines == [
        f"Heartbeat{{sourceClusterAlias=a, targetClusterAlias=b, timestamp={each}}}"
        for each in (7, 8)
    ]
    assert "offset 1" in left.error
    for other in (("--format", "text"), ("-f", "%s"), ("--value-format", "auto")):
        assert pylog_run(*command, *other).status == 2


def test_a_formatter_that_follows_does_the_same_with_what_it_cannot_decode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    looks = iter([[(b"k", b"v"), heartbeat("a", "b", 8)], [heartbeat("a", "b", 9)]])
    told: list[str] = []

    def write(offset: int, records: list[tuple[bytes, bytes]]) -> None:
        stored = [Stored(offset + at, 5, *each) for at, each in enumerate(records)]
        with segment_path(tmp_path / "heartbeats-0", 0).open("ab") as file:
            file.write(batch_v2(stored).data)

    def append_meanwhile(_seconds: float) -> None:
        told.append("")
        write(2 * len(told) - 1, next(looks))

    monkeypatch.setattr(following, "sleep", append_meanwhile)
    (tmp_path / "heartbeats-0").mkdir()
    write(0, [heartbeat("a", "b", 7)])
    command = ("cat", tmp_path, "--follow", "--formatter", "mm2-heartbeats", "--limit", 4)
    left = pylog_run(*command, "--mode", "DROPMALFORMED")
    assert (left.status, len(told)) == (1, 2)
    assert left.lines == [
        f"Heartbeat{{sourceClusterAlias=a, targetClusterAlias=b, timestamp={each}}}"
        for each in (7, 8, 9)
    ]
    [line] = left.error.splitlines()
    assert line.startswith("pylog: error: ")
    assert "is no heartbeat of MirrorMaker 2" in line
    assert "offset 1" in line
    failed = pylog_run(*command)
    assert (failed.status, len(failed.lines)) == (1, 1)
    assert "is no heartbeat of MirrorMaker 2" in failed.error


def test_an_offset_of_thousands_of_digits_is_none(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "-o", "9" * 5_000)
    assert done.status == 2
    assert "is not beginning, end, an offset, or -N" in done.error
