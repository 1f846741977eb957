from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

TIME_MS = 1_795_000_000_123  # 2026-11-18T11:06:40.123Z
DAY_MS = 86_400_000

# Whatever a terminal or a reader of bidirectional text acts upon.
HOSTILE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    records = [
        Stored(7, TIME_MS, b"user-42", b'{"a":1}', (("trace", b"7"), ("n", None))),
        Stored(8, TIME_MS + 1, None, None),
        Stored(9, TIME_MS + DAY_MS, b"", b""),
        Stored(10, -1, "\u65e5\u672c".encode(), b"\xff\x00 text"),
    ]
    write_partition(tmp_path, {7: [batch_v2(records)]})
    return tmp_path


def test_a_line_has_place_time_key_value_and_headers(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    assert pylog_run("cat", logs, "--format", "pretty").lines == [
        'orders-0@7 2026-11-18T11:06:40.123Z user-42 {"a":1} [trace=7 n=\u2205]',
        "orders-0@8 2026-11-18T11:06:40.124Z \u2205 \u2205",
        'orders-0@9 2026-11-19T11:06:40.123Z "" ""',
        "orders-0@10 - \u65e5\u672c \\xff\\x00 text",
    ]


def test_where_there_is_no_room_the_date_stands_above_when_it_changes(logs: Path) -> None:
    assert in_terminal(80, "cat", logs, NO_COLOR="1").splitlines() == [
        "2026-11-18 UTC",
        'orders-0@7 11:06:40.123 user-42 {"a":1} [trace=7 n=\u2205]',
        "orders-0@8 11:06:40.124 \u2205 \u2205",
        "2026-11-19 UTC",
        'orders-0@9 11:06:40.123 "" ""',
        "orders-0@10 - \u65e5\u672c \\xff\\x00 text",
    ]
    wide = in_terminal(120, "cat", logs, TERM="dumb").splitlines()
    assert wide[1] == "orders-0@8 2026-11-18T11:06:40.124Z \u2205 \u2205"


def test_a_terminal_has_colours(logs: Path) -> None:
    first, second, *_ = in_terminal(120, "cat", logs).splitlines()
    place, time = "\x1b[36morders-0@7\x1b[0m", "\x1b[2m2026-11-18T11:06:40.123Z\x1b[0m"
    headers = "\x1b[2m[trace=7 n=\u2205]\x1b[0m"
    assert first == f'{place} {time} \x1b[32muser-42\x1b[0m {{"a":1}} {headers}'
    assert second.endswith(" \x1b[2m\u2205\x1b[0m \x1b[2m\u2205\x1b[0m")


@pytest.mark.parametrize(
    "options", [("--values", "text"), ("--format", "jsonl"), ("--format", "text"), ("-f", r"%o\n")]
)
def test_what_is_asked_for_is_printed_in_a_terminal_too(
    logs: Path, options: tuple[str, ...], pylog_run: Callable[..., Outcome]
) -> None:
    assert in_terminal(80, "cat", logs, *options) == (
        pylog_run("cat", logs, *options).output.decode()
    )


def test_nothing_in_a_record_is_a_command_to_the_terminal(tmp_path: Path) -> None:
    hostile = "".join(map(chr, [*range(0xA0), 0x61C, *range(0x200E, 0x2010)]))
    hostile += "".join(map(chr, [*range(0x2028, 0x202F), *range(0x2066, 0x206A)]))
    content = hostile.encode()
    record = Stored(0, TIME_MS, content, content + b"\xc3\x9b\x80", ((hostile, content),))
    write_partition(tmp_path, {0: [batch_v2([record])]}, name="web\x1b[2J\u202e-0")
    for options in ([], ["--merge"], ["--format", "pretty"]):
        output = in_terminal(200, "cat", tmp_path, *options, NO_COLOR="1")
        assert output.count("\n") == 1
        assert HOSTILE.findall(output) == []
        assert output.startswith(r"web\x1b[2J\u202e-0@0 ")


def test_times_that_no_calendar_of_pythons_has(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 2**62, b"k", b"v")])]})
    assert pylog_run("cat", tmp_path, "--format", "pretty").lines == [
        "orders-0@0 +146140482-04-24T15:36:27.904Z k v"
    ]


def test_values_is_not_for_it(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("cat", logs, "--format", "pretty", "--values", "text")
    assert done.status == 2
    assert "--values is for --format jsonl" in done.error
