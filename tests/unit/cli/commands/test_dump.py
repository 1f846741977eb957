from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2, joined, plain_records, with_bad_crc
from tests.support.log_files import offset_index_bytes, segment_path, write_partition
from tests.support.mirror_records import connect, heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

    Run = Callable[..., Outcome]

BATCHES = [batch_v2(plain_records(0, 3)), batch_v2(plain_records(3, 3))]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = segment_path(tmp_path, 0)
    path.write_bytes(joined(BATCHES))
    return path


def test_kafkas_options_are_taken_by_their_names(log: Path, pylog_run: Run) -> None:
    done = pylog_run(
        "dump",
        *("--files", f"{log},{log}", "--print-data-log", "--max-bytes", len(BATCHES[0].data)),
        *("--skip-record-metadata", "--deep-iteration", "--max-message-size", 1000),
        *("--verify-index-only", "--index-sanity-check"),
        *("--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder"),
    )
    assert (done.status, done.error) == (0, "")
    lines = done.output.decode("utf-8", "replace").split("\n")
    assert lines[0] == f"Dumping {log}"
    assert lines[3].startswith("| key: k0 payload: ")
    assert len(lines) == 2 * 6 + 1


def test_what_is_wrong_is_told_on_stderr_in_the_end(log: Path, pylog_run: Run) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(offset_index_bytes([(4, len(BATCHES[0].data))], 0))
    other = segment_path(log.parent, 7)
    other.write_bytes(BATCHES[0].data + bytes(50))
    done = pylog_run("dump", index, other, "--deep-iteration")
    assert done.status == 1
    zeros = "Found record size 0 smaller than minimum record overhead (14)"
    assert done.error.split("\n") == [
        f"pylog: error: {other} at byte {len(BATCHES[0].data)}: {zeros}",
        f"Mismatches in :{index}",
        "  Index offset: 4, log offset: 5",
        "",
    ]


def test_a_wrong_checksum_gives_status_1(log: Path, pylog_run: Run) -> None:
    log.write_bytes(with_bad_crc(BATCHES[0]).data)
    done = pylog_run("dump", log)
    assert (done.status, done.error) == (1, "")
    assert done.lines[-1].endswith("isvalid: false")


def test_offsets_that_do_not_follow_each_other_are_told_and_not_wrong(
    log: Path, pylog_run: Run
) -> None:
    log.write_bytes(BATCHES[1].data)
    done = pylog_run("dump", "--deep-iteration", log)
    assert done.status == 0
    assert done.error == f"Non-consecutive offsets in {log}\n  -1 is followed by 3\n"


@pytest.mark.parametrize(("offset", "base"), [(2, 0), (3, 3)])
def test_an_offset_is_that_of_one_batch_and_a_flag_asks_for_json(
    tmp_path: Path, pylog_run: Run, offset: int, base: int
) -> None:
    write_partition(tmp_path, {0: BATCHES}, name="orders-0")
    done = pylog_run(
        "dump", tmp_path, "--topic", "orders", "--partition", 0, "--json", "--offset", offset
    )
    assert done.status == 0
    of_file, of_batch = map(json.loads, done.lines)
    assert (of_file["type"], of_batch["type"], of_batch["baseOffset"]) == ("file", "batch", base)


def test_nothing_that_can_be_read_is_status_2(tmp_path: Path, pylog_run: Run) -> None:
    done = pylog_run("dump", segment_path(tmp_path, 0))
    assert done.status == 2
    assert done.error.startswith(f"pylog: error: {segment_path(tmp_path, 0)}: ")


def test_a_terminal_is_given_nothing_that_it_would_obey(
    tmp_path: Path, pylog_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "\x1b[2J-0"
    records = [Stored(0, 5, b"\x1b]0;title\x07", "one\n\u202etwo\u0085".encode())]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name=directory.name)
    arguments = ("dump", "--print-data-log", segment_path(directory, 0))
    as_bytes = pylog_run(*arguments).output
    assert b"key: \x1b]0;title\x07 payload: one\n\xe2\x80\xaetwo\xc2\x85\n" in as_bytes
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    printed = pylog_run(*arguments).output
    assert rb"key: \x1b]0;title\x07 payload: one" + b"\n" + rb"\u202etwo\u0085" + b"\n" in printed
    assert rb"/\x1b[2J-0/" in printed
    assert not set(printed) & {*range(10), *range(11, 32), 127, 0xC2}


def test_a_file_of_another_kind_is_passed_over(tmp_path: Path, pylog_run: Run) -> None:
    (tmp_path / "notes.txt").write_text("")
    done = pylog_run("dump", tmp_path / "notes.txt")
    assert done.lines == [f"Dumping {tmp_path / 'notes.txt'}"]
    assert done.error == f"pylog: error: Ignoring unknown file {tmp_path / 'notes.txt'}\n"
    assert done.status == 1


def test_records_of_connect_and_mirror_maker_are_decoded(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    records = {
        "heartbeats-0": heartbeat("a", "b", 7),
        "connect-offsets-0": connect(["c", {"x": 1}], {"at": 2}),
    }
    for name, record in records.items():
        write_partition(tmp_path, {0: [batch_v2([Stored(0, 5, *record)])]}, name=name)
    printed = pylog_run("dump", "--mm2-heartbeats-decoder", tmp_path / "heartbeats-0").lines
    text = "payload: Heartbeat{sourceClusterAlias=a, targetClusterAlias=b, timestamp=7}"
    assert any(each.endswith(text) for each in printed)
    lines = pylog_run("dump", "--connect-decoder", "--json", tmp_path / "connect-offsets-0").lines
    [found] = [each for each in map(json.loads, lines) if each["type"] == "record"]
    assert (found["key"], found["payload"]) == (["c", {"x": 1}], {"at": 2})
