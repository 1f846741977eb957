from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest

from pylog.cli.main import run
from tests.support.batches import Stored, batch_v2, plain_records, wrapper
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

HOUR_MS = 3_600_000
FIRST_HOUR_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    for number in range(2):
        batches = [
            batch_v2(
                [
                    Stored(3 * at + row, FIRST_HOUR_MS + at * HOUR_MS, b"k%d" % row, b"v" * 400)
                    for row in range(3)
                ],
                codec="gzip" if at % 2 else "none",
            )
            for at in range(4 + 4 * number)
        ]
        write_partition(tmp_path, {0: batches}, name=f"orders-{number}")
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]}, name="users-0")
    return tmp_path


def size_of(directory: Path, pattern: str = "*/*.log") -> str:
    return f"{sum(path.stat().st_size for path in directory.glob(pattern)) / 1024:.1f}KiB"


def test_topics_come_in_a_table_and_then_one_by_one(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("stats", log_directory)
    assert (done.status, done.error) == (0, "")
    assert [line.split()[:5:2] for line in done.lines[:3]] == [
        ["TOPIC", "SIZE", "BATCHES"],
        ["orders", size_of(log_directory, "orders-*/*.log"), "12"],
        ["users", f"{(log_directory / 'users-0' / (20 * '0' + '.log')).stat().st_size}B", "1"],
    ]
    assert "orders" in done.lines
    assert "  partitions by size (the largest has 1.33 times the mean)" in done.lines
    at = done.lines.index("  bytes by the largest timestamp of their batch (UTC)")
    assert done.lines[at + 1 : at + 4] == [
        "    █▁█▁▄▁▄▁",
        "    2023-11-14 22:00 to 2023-11-15 06:00",
        "    each character is an hour, the highest one 2.5KiB",
    ]
    assert done.lines[-1] == (
        f"2 topics, 3 partitions, 3 segments, {size_of(log_directory)}, "
        f"{size_of(log_directory, '*/*')} on disk, only headers were read "
        "(--sample: keys, savings; --full: checksums too)"
    )


def test_a_sample_tells_keys_large_records_and_savings(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    text = "\n".join(pylog_run("stats", log_directory, "--sample", "--topic", "orders").lines)
    assert "  size with other codecs and batch sizes (" in text
    assert "  most frequent keys, of all records" in text  # so small a topic is read as a whole
    assert "    k0       33.3 %    33.3 %          0" in text
    assert "  largest records, before compression" in text
    assert "users" not in text


def test_only_the_largest_topics_have_a_part_of_their_own(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    lines = pylog_run("stats", log_directory, "--top", "1").lines
    assert "users" not in lines
    assert lines[2].startswith("users ")
    assert "1 smaller topic is only in the table (--top shows more of them)" in lines


def test_json_is_one_document(log_directory: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("stats", log_directory, "--full", "--json", "--partition", "1")
    found = json.loads(done.output)
    assert found["read"] == "all"
    assert [row["topic"] for row in found["topics"]] == ["orders"]
    assert [row["key"] for row in found["hotKeys"]] == ["k0", "k1", "k2"]
    assert found["times"][0]["start"] == FIRST_HOUR_MS
    assert found["summary"]["records"] == 24


def test_a_page_is_written_and_named(
    log_directory: Path, pylog_run: Callable[..., Outcome], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = pylog_run("stats", log_directory, "--html", page)
    assert (done.status, done.output) == (0, b"")
    assert done.error.startswith(f"pylog: written to {page} (")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_one_line(
    log_directory: Path, pylog_run: Callable[..., Outcome], tmp_path: Path
) -> None:
    done = pylog_run("stats", log_directory, "--html", tmp_path / "no" / "page.html")
    assert done.status == 2
    assert done.error == f"pylog: error: {tmp_path}/no/page.html: No such file or directory\n"


def test_damage_is_status_1_and_named_once(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = log_directory / "users-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[16] = 9
    path.write_bytes(bytes(data) + data)
    done = pylog_run("stats", log_directory)
    assert done.status == 1
    assert sum("are damaged" in line for line in done.lines) == 1
    assert done.lines[-1].startswith(
        f"2 topics, 3 partitions, 3 segments, {size_of(log_directory)}, "
        f"{size_of(log_directory, '*/*')} on disk, 1 problem"
    )


def test_sample_and_full_are_two_ways(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("stats", log_directory, "--sample", "--full")
    assert done.status == 2
    assert done.error.startswith("pylog: error: give either --sample or --full, not both")


@pytest.mark.parametrize("width", [80, 140])
def test_in_a_terminal_lines_are_as_wide_as_it_is(
    width: int, log_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    output = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", output)
    assert run(["stats", str(log_directory), "--sample"]) == 0
    text = output.getvalue()
    assert "\x1b[1morders\x1b[0m" in text
    assert re.search("\x1b\\[32m█+\x1b\\[0m", text)
    plain = re.sub("\x1b\\[[0-9]+m", "", text)
    widths = [len(line) for line in plain.splitlines()]
    assert max(widths) <= width
    assert max(widths) > 60


def test_an_output_without_block_characters_has_others(
    log_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [wrapper(plain_records(0, 5), magic=1, codec="gzip")]
    write_partition(log_directory, {0: old}, name="old-0")
    long_key = batch_v2([Stored(0, 1, b"k" * 99, b"v")])
    write_partition(log_directory, {0: [long_key]}, name="long-0")
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", output)
    assert run(["stats", str(log_directory), "--sample"]) == 0
    output.flush()
    assert b"########" in output.buffer.getvalue()


@pytest.mark.parametrize(
    ("place", "reason"),
    [(".", "Is a directory"), ("no/page.html", "No such file or directory")],
)
def test_nothing_is_read_for_a_page_that_cannot_be_written(
    place: str,
    reason: str,
    log_directory: Path,
    pylog_run: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pylog.stats", None)
    done = pylog_run("stats", log_directory, "--html", log_directory / place)
    assert (done.status, done.output) == (2, b"")
    assert done.error == f"pylog: error: {log_directory / place}: {reason}\n"
