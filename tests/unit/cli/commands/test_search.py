from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

TIME_MS = 1_700_000_000_000


def record(offset: int, value: bytes | None, *, key: bytes | None = b"k") -> Stored:
    return Stored(offset, TIME_MS + offset, key, value, (("trace", b"%d" % offset),))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    values = [b"a timeout", b'{"user":{"id":7}}', None, b"tab\there timeout"]
    records = [record(at, value) for at, value in enumerate(values)]
    write_partition(tmp_path, {0: [batch_v2(records)]})
    old = Stored(0, -1, None, b"timeout")
    write_partition(tmp_path, {0: [batch_v2([old])]}, name="web-0")
    return tmp_path


def test_matches_are_lines_and_the_summary_is_on_stderr(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("search", logs, "--value-contains", "timeout")
    assert done.status == 0
    assert done.lines == [
        "orders-0\t0\t2023-11-14 22:13:20.000Z\tk\ta timeout",
        "orders-0\t3\t2023-11-14 22:13:20.003Z\tk\ttab\\there timeout",
        "web-0\t0\t-\t\\N\ttimeout",
    ]
    assert done.error.startswith("pylog: 3 matches in 5 records of 2 partitions, ")
    assert done.error.endswith(" searched\n")


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        (["--value-regex", "^a .*out$"], [0]),
        (["--json-path", "$.user.id=7"], [1]),
        (["--header", "trace=2"], [2]),
        (["--header", "trace", "--max-timestamp", TIME_MS + 1], [0, 1]),
        (["--key", "k", "--min-timestamp", TIME_MS + 2], [2, 3]),
        (["--value-contains", "timeout", "--value-contains", "tab"], [3]),
        (["--key", "k", "--start-offset", 1, "--end-offset", 3], [1, 2]),
        (["--key", "k", "--limit", 1], [0]),
        (["--key", "nobody"], []),
        (["--key", "k", "-p", "0", "-o", "-3", "-c", "2"], [1, 2]),
        (["--key-contains", "k"], [0, 1, 2, 3]),
        (["--key-contains", "K"], []),
        (["--key-contains", "K", "-i"], [0, 1, 2, 3]),
        (["--key-regex", "^k$", "--tombstones"], [2]),
        (["--value-contains", "TAB", "--ignore-case"], [3]),
        (["--value-regex", "^A", "-i"], [0]),
        (["--tombstones"], [2]),
        (["--not", "--tombstones"], [0, 1, 3]),
        (["--not", "--value-contains", "timeout"], [1, 2]),
        (["--not", "--value-contains", "timeout", "--value-contains", "tab"], [0, 1, 2]),
        (["--not", "--value-contains", "timeout", "--min-timestamp", TIME_MS + 2], [2]),
        (["--json-path", "$.user.id>=7"], [1]),
        (["--json-path", "$.user.id<7"], []),
        (["--json-path", "$.user.id!=8"], [1]),
    ],
)
def test_all_tests_have_to_pass(
    arguments: list[object],
    offsets: list[int],
    logs: Path,
    pylog_run: Callable[..., Outcome],
) -> None:
    done = pylog_run("search", logs, "--topic", "orders", *arguments)
    assert done.status == 0
    assert [int(line.split("\t")[1]) for line in done.lines] == offsets


def test_json_is_a_line_a_match_and_the_summary_at_the_end(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("search", logs, "--value-contains", "timeout", "--limit", 2, "--json")
    first, second, last = [json.loads(line) for line in done.lines]
    assert (first["offset"], first["value"], second["offset"]) == (0, "a timeout", 3)
    assert (last["summary"]["matches"], last["summary"]["isComplete"]) == (2, False)
    assert done.error == ""


def test_only_the_number_may_be_printed(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("search", logs, "--value-contains", "timeout", "--count")
    assert (done.lines, done.status) == (["3"], 0)
    done = pylog_run("search", logs, "--value-contains", "timeout", "--count", "--json")
    assert json.loads(done.output)["summary"]["matches"] == 3


def test_matches_may_have_a_format_of_kcat(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("search", logs, "--json-path", "$.user", "-f", r"%o:%s\n")
    assert done.output == b'1:{"user":{"id":7}}\n'


def test_damage_is_named_and_the_rest_is_searched(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    batches = [batch_v2([record(at, b"timeout")]) for at in range(3)]
    batches[1] = with_bad_crc(batches[1])
    path = write_partition(tmp_path, {0: batches})
    done = pylog_run("search", tmp_path, "--value-contains", "timeout")
    assert done.status == 1
    assert [line.split("\t")[1] for line in done.lines] == ["0", "2"]
    warning, summary, rest = done.error.splitlines()
    assert warning.startswith(f"pylog: warning: {path}/00000000000000000000.log: bytes ")
    assert "1 record may be missing, offset 1" in warning
    assert summary.startswith("pylog: 2 matches in 2 records of 1 partition")
    assert rest.startswith("pylog: 1 range (")
    assert rest.endswith(") could not be searched, see above")
    done = pylog_run("search", tmp_path, "--value-contains", "timeout", "--json")
    [damaged] = json.loads(done.lines[-1])["summary"]["unreadable"]
    assert (damaged["nextOffset"], damaged["endOffset"]) == (1, 2)


def test_a_name_with_control_characters_is_escaped(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2([record(0, b"here")])]}, name="web\x1b[2J\u202e-0")
    done = pylog_run("search", tmp_path, "--value-contains", "here")
    assert done.lines == ["web\\x1b[2J\\u202e-0\t0\t2023-11-14 22:13:20.000Z\tk\there"]


def test_a_pattern_that_backtracks_ends_the_search_in_time(
    tmp_path: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.cli.commands.search.MOST_SECONDS", 0.3)
    write_partition(tmp_path, {0: [batch_v2([record(0, b"a" * 60 + b"!")])]})
    done = pylog_run("search", tmp_path, "--value-regex", "^(a+)+$", "--threads", 2)
    assert done.status == 2
    assert done.error.startswith("pylog: error: --value-regex has been at the same records for ")
    assert done.error.count("\n") == 1
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert pylog_run("search", tmp_path, "--value-regex", "^a+!$").status == 0


def test_threads_do_not_change_what_is_found(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("search", logs, "--value-contains", "timeout", "--threads", 3)
    assert done.output == pylog_run("search", logs, "--value-contains", "timeout").output


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    for number in range(8):
        batch = batch_v2([record(0, b"%d" % number, key=b"user-7")])
        write_partition(tmp_path, {0: [batch]}, name=f"orders-{number}")
    return tmp_path


def test_with_a_partitioner_the_partition_that_was_read_is_named(
    wide: Path, pylog_run: Callable[..., Outcome]
) -> None:
    arguments = ("search", wide, "--key", "user-7", "--partitioner", "consistent_random")
    done = pylog_run(*arguments)
    assert [line.split("\t")[0] for line in done.lines] == ["orders-1"]
    assert done.error.splitlines()[-1] == (
        "pylog: note: only partition 1 of 8 of topic orders was searched, where --partitioner puts "
        "the key; records from before partitions were added may be in others"
    )
    done = pylog_run(*arguments, "--json")
    assert (len(done.lines), done.error) == (2, "")
    assert json.loads(done.lines[-1])["summary"].keys() == {
        *("partitions", "matches", "scannedBytes", "totalBytes", "scannedBatches"),
        *("scannedRecords", "uncountedBatches", "isComplete", "unreadable", "absent"),
        "undecodable",
    }


def test_the_partition_of_a_key_comes_first(wide: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("search", wide, "--key", "user-7")
    order = [line.split("\t")[0] for line in done.lines]
    assert order == [f"orders-{number}" for number in (4, 0, 1, 2, 3, 5, 6, 7)]


def test_a_pattern_for_keys_is_named_when_it_backtracks(
    tmp_path: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.cli.commands.search.MOST_SECONDS", 0.3)
    write_partition(tmp_path, {0: [batch_v2([record(0, b"v", key=b"a" * 60 + b"!")])]})
    done = pylog_run("search", tmp_path, "--key-regex", "^(a+)+$")
    assert done.status == 2
    assert done.error.startswith("pylog: error: --key-regex has been at the same records for ")


def found(text: str) -> str:
    return f"\x1b[1;31m{text}\x1b[0m"


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        (["--value-contains", "TIME", "-i"], [f"a {found('time')}out", f"{found('time')}out"]),
        (["--value-regex", "t.m|meo"], [f"a {found('tim')}eout", f"{found('tim')}eout"]),
        (["--value-contains", "imeo", "--value-regex", "^a t"], [f"{found('a timeo')}ut"]),
        (["--key", "k"], [f"{found('k')} a timeout", f'{found("k")} {{"user":{{"id":7}}}}']),
        (["--key-contains", "k"], [f"{found('k')} a timeout"]),
        (["--key-regex", "."], [f"{found('k')} a timeout"]),
        (["--json-path", "$.user.id>5"], [f'{{"user":{{"id":{found("7")}}}}}']),
        (["--value-regex", "x*", "--limit", "1"], ["a timeout"]),  # what is empty is not seen
        (["--not", "--value-contains", "timeout"], ['{"user":{"id":7}}']),
    ],
)
def test_in_a_terminal_what_was_found_stands_out(
    logs: Path, arguments: list[str], ends: list[str]
) -> None:
    lines = in_terminal(140, "search", logs, *arguments).splitlines()
    lines = [line.partition(" \x1b[2m[")[0] for line in lines]  # without headers
    for end in ends:
        assert any(line.endswith(end) for line in lines), (end, lines)


def test_in_a_terminal_values_are_in_one_column(tmp_path: Path) -> None:
    keys = [b"a", "\u65e5\u672c".encode(), b"a-long-key", None]
    records = [
        Stored(at, TIME_MS - 1, key, b"value")
        for at, key in zip((1, 9, 99, 100), keys, strict=True)
    ]
    records[2] = Stored(99, -1, keys[2], b"value")
    write_partition(tmp_path, {0: [batch_v2(records)]})
    output = in_terminal(140, "search", tmp_path, "--value-contains", "value", NO_COLOR="1")
    assert output.splitlines() == [
        "orders-0@1   2023-11-14T22:13:19.999Z a          value",
        "orders-0@9   2023-11-14T22:13:19.999Z \u65e5\u672c       value",
        "orders-0@99  -                        a-long-key value",
        "orders-0@100 2023-11-14T22:13:19.999Z \u2205          value",
    ]


def test_nothing_that_is_found_is_a_command_to_the_terminal(tmp_path: Path) -> None:
    value = b"x\x1b[2Jneedle\xe2\x80\xae\xff" * 3
    write_partition(tmp_path, {0: [batch_v2([record(0, value, key=value)])]})
    output = in_terminal(140, "search", tmp_path, "--value-contains", "\x1b[2Jneedle\u202e")
    shown = found("\\x1b[2Jneedle\\u202e")
    assert f" x{shown}\\xffx{shown}\\xffx{shown}\\xff " in output
    assert "\x1b[2J" not in output
    assert "\u202e" not in output


def test_the_summary_has_no_escape_sequence_of_a_topic_s_name(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2([record(0, b"v")])]}, name="a\x1b[2J-0")
    done = pylog_run("search", tmp_path, "--key", "k", "--partitioner", "default")
    assert done.status == 0
    assert "of topic a\\x1b[2J was searched" in done.error
    assert "\x1b" not in done.error
