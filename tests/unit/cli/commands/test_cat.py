from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pylog.cli import output as record_output
from pylog.cli.commands import cat as following
from tests.support.batches import Stored, batch_v2, joined, plain_records, with_bad_crc
from tests.support.golden import Holds, differences, golden_partitions, read_expected
from tests.support.images import chain, holding
from tests.support.log_files import offset_index_bytes, segment_path, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot, Isolation
    from tests.unit.cli.conftest import Outcome


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """Two partitions; timestamps are 1000 + offset in one, 5000 + offset in the other."""
    for partition, first, stamp in ((0, 0, 1_000), (1, 3, 5_003)):
        records = plain_records(first, 20, timestamp=stamp)
        batches = [batch_v2(records[at : at + 5]) for at in range(0, 20, 5)]
        write_partition(tmp_path, {first: batches}, name=f"orders-{partition}")
    return tmp_path


def records_of(done: Outcome) -> list[dict[str, Any]]:
    assert done.status == 0, done.error
    return [json.loads(line) for line in done.lines]


def partitions_and_offsets(done: Outcome) -> list[tuple[int, int]]:
    return [(record["partition"], record["offset"]) for record in records_of(done)]


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


def test_offsets_bound_every_partition(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-offset", 4, "--end-offset", 6)
    assert partitions_and_offsets(done) == [(0, 4), (0, 5), (1, 4), (1, 5)]


def test_an_offset_outside_one_partition_names_it_and_its_range(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-offset", 1)
    assert done.status == 2
    assert done.error == (
        "pylog: error: offset 1 of orders-1 is out of range: the log holds offsets 3 to 23 "
        "(exclusive)\n"
    )
    assert pylog_run("cat", log_directory, "--end-offset", 2**63).status == 2


def test_a_start_after_the_end_is_an_error(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-offset", 9, "--end-offset", 5)
    assert done.status == 2
    assert "range of orders-0 starts at offset 9, after its end offset 5" in done.error


def test_timestamps_are_looked_up_and_late_partitions_are_empty(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-timestamp", 1_018, "--end-timestamp", 5_005)
    assert partitions_and_offsets(done) == [(0, 18), (0, 19), (1, 3), (1, 4)]
    assert partitions_and_offsets(pylog_run("cat", log_directory, "--start-timestamp", 5_021)) == [
        (1, 21),
        (1, 22),
    ]
    nothing = pylog_run("cat", log_directory, "--start-timestamp", 2**62)
    assert (nothing.status, nothing.output) == (0, b"")


def test_one_partition_may_be_chosen(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--topic", "orders", "--partition", 1)
    assert {partition for partition, _ in partitions_and_offsets(done)} == {1}


@pytest.mark.parametrize(
    "topics", [["--topic", "web", "--topic", "orders"], ["--topic", "web,orders"]]
)
def test_topics_may_be_repeated_or_listed_with_commas(
    topics: list[str], log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for name in ("web-0", "web-1", "others-0"):
        write_partition(log_directory, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    found = records_of(pylog_run("cat", log_directory, *topics))
    counts = Counter((record["topic"], record["partition"]) for record in found)
    assert counts == {("orders", 0): 20, ("orders", 1): 20, ("web", 0): 1, ("web", 1): 1}


def test_topics_may_be_chosen_by_a_pattern(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(log_directory, {0: [batch_v2(plain_records(0, 1))]}, name="web-0")
    found = records_of(pylog_run("cat", log_directory, "--pattern", "^w"))
    assert [record["topic"] for record in found] == ["web"]
    done = pylog_run("cat", log_directory, "--pattern", "^x")
    assert (done.status, done.output) == (2, b"")
    assert "no topic here matches the pattern '^x'; topics found: orders, web" in done.error
    done = pylog_run("cat", log_directory, "--pattern", "(")
    assert (done.status, done.output) == (2, b"")
    assert "topic pattern '('" in done.error


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


def test_times_may_be_dates_and_a_while_ago(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    now = int(time.time() * 1000)
    stamps = [1_709_251_200_000, now - 5 * 3_600_000, now - 3_600_000]
    records = [Stored(at, stamp, None, b"") for at, stamp in enumerate(stamps)]
    directory = write_partition(tmp_path, {0: [batch_v2([record]) for record in records]})

    def offsets(*arguments: str) -> list[int]:
        return [
            offset for _, offset in partitions_and_offsets(pylog_run("cat", directory, *arguments))
        ]

    assert offsets("--start-timestamp", "-2h") == [2]
    assert offsets("--start-timestamp", "2024-03-01", "--end-timestamp", "-2h") == [0, 1]
    assert offsets("--start-timestamp", "2024-03-01T00:00:00.001Z") == [1, 2]
    assert offsets("--end-timestamp", "2024-03-01T01:00:00+01:00") == []


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
    assert "5 records, offsets 5 to 9, may be missing: batch CRC" in done.error
    assert done.error.count("\n") == 1


def test_the_limit_on_a_batchs_size_is_an_option(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    large = batch_v2(plain_records(1, 1, value_size=9_000), codec="gzip")
    batches = [batch_v2(plain_records(0, 1)), large, batch_v2(plain_records(2, 1))]
    directory = write_partition(tmp_path, {0: batches})
    done = pylog_run("cat", directory, "--mode", "DROPMALFORMED", "--max-decompressed-bytes", 9_000)
    assert done.status == 1
    assert [json.loads(line)["offset"] for line in done.lines] == [0, 2]
    assert "limit of 9000 bytes" in done.error
    assert "--max-decompressed-bytes" in done.error
    assert len(pylog_run("cat", directory).lines) == 3


def test_failfast_is_the_mode_unless_another_is_named(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    assert pylog_run("cat", log_directory, "--mode", "FAILFAST").status == 0
    assert pylog_run("cat", log_directory, "--mode", "DROPMALFORMED").status == 0


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


def test_index_files_that_were_forged_may_be_ignored(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    images = chain(7, 200)
    outer = holding(plain_records(3, 3), images, to_the_end=True)
    batches = [batch_v2(plain_records(0, 3)), outer, batch_v2(plain_records(300, 1))]
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    at = joined(batches).index(images[0].data)
    size = len(images[0].data)
    lies = [(7 + place, at + place * size) for place in range(200)]
    segment_path(path, 0, ".index").write_bytes(offset_index_bytes(lies, 0))
    done = pylog_run("cat", tmp_path, "--start-offset", "190", "--ignore-indexes")
    assert partitions_and_offsets(done) == [(0, 300)]


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


@pytest.mark.parametrize("other", [["--merge"], ["--last", 1], ["--end-offset", 5]])
def test_follow_has_no_end(
    other: list[object], log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--follow", *other)
    assert (done.status, "--follow has no end" in done.error) == (2, True)


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
    assert "2 records, offsets 20 to 21, may be missing" in done.error


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "newest"], "'newest' is not beginning, end, an offset, or -N"),
        (["-o", "--2"], "'--2' is not beginning, end, an offset, or -N"),
        (["-o", "9" * 5_000], "is not beginning, end, an offset, or -N"),
        (["-o", "9" * 19], "is not beginning, end, an offset, or -N"),
        (["-o", str(2**63 - 1)], "is out of range: the log holds offsets 0 to 20 (exclusive)"),
        (["-o", "5", "--start-offset", "5"], "give either -o, --start-offset or --start-timestamp"),
        (["-o", "5", "--start-timestamp", "-1h"], "give either -o, --start-offset or --start-time"),
        (["-t", "orders", "--pattern", "o"], "give either --topic or --pattern, not both"),
    ],
)
def test_options_of_kcat_that_make_no_sense(
    log_directory: Path,
    pylog_run: Callable[..., Outcome],
    arguments: list[str],
    message: str,
) -> None:
    done = pylog_run("cat", log_directory, *arguments)
    assert (done.status, done.output, done.error.count("\n")) == (2, b"", 1)
    assert message in done.error


def test_the_last_offsets_are_those_before_the_end_that_is_read(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    """With read_committed, nothing from the first open transaction on."""
    opened = batch_v2(plain_records(10, 5), producer_id=7, is_transactional=True)
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10)), opened]})
    for isolation, offsets in (("read_committed", [8, 9]), ("read_uncommitted", [13, 14])):
        done = pylog_run("cat", tmp_path, "-o", "-2", "--isolation", isolation, "-f", r"%o\n")
        assert [int(line) for line in done.lines] == offsets


def test_a_range_by_time_says_which_of_its_records_are_earlier(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    times = [1000, 3000, 2000, 9000, 4000, 9500]
    records = [Stored(offset, time_ms, None, b"v") for offset, time_ms in enumerate(times)]
    write_partition(tmp_path, {0: [batch_v2(records)]})
    done = pylog_run("cat", tmp_path, "--start-timestamp", "3000")
    assert [json.loads(line)["offset"] for line in done.lines] == [1, 2, 3, 4, 5]
    assert done.error == (
        "pylog: note: 1 record is earlier than --start-timestamp: timestamps are out of order, and "
        "a time only looks up an offset; --min-timestamp filters\n"
    )
    done = pylog_run("cat", tmp_path, "--start-timestamp", "1000", "--end-timestamp", "4000")
    assert [json.loads(line)["offset"] for line in done.lines] == [0, 1, 2]
    assert done.error == ""
    for ordered in ("1000", "9500"):
        assert pylog_run("cat", tmp_path, "--start-timestamp", ordered).error == ""


@pytest.mark.parametrize("command", ["cat", "search"])
def test_a_range_in_a_missing_segment_is_not_called_empty(
    command: str, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    segments = {0: [batch_v2(plain_records(0, 10))], 20: [batch_v2(plain_records(20, 10))]}
    write_partition(tmp_path, segments)
    chosen = (tmp_path, "--topic", "orders", *(["--key-contains", "e"] * (command == "search")))
    done = pylog_run(command, *chosen, "--start-offset", 12, "--end-offset", 18)
    assert done.output == b""
    absent = "orders-0 has no segment with offsets 12 to 17: one is missing, or compaction"
    assert absent in done.error
    assert "empty" not in done.error
    for start, end in ((8, 18), (12, 21), (5, 5), (20, 25)):
        other = pylog_run(command, *chosen, "--start-offset", start, "--end-offset", end)
        assert "no segment" not in other.error


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
