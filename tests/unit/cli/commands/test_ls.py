from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pylog.cli.main import run
from tests.support.batches import Stored, batch_v2, message, plain_records, with_bad_crc
from tests.support.faults.odd_files import deadline, put
from tests.support.log_files import write_log_start_offsets, write_partition, write_segment
from tests.unit.cli.conftest import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

BATCHES = [batch_v2(plain_records(0, 5), leader_epoch=3), batch_v2(plain_records(5, 5))]


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: BATCHES}, name="orders-0")
    write_partition(tmp_path, {0: [message(Stored(0, 1, None, b"v"), magic=1)]}, name="old-7")
    return tmp_path


def test_a_row_has_offsets_segments_size_epoch_and_topic_id(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("ls", golden_root.case("4.3.0/plain"))
    assert done.status == 0
    assert done.lines[0].split("  ")[0] == "TOPIC"
    assert done.lines[0].split() == [
        *("TOPIC", "PARTITION", "START", "END", "SEGMENTS", "SIZE", "DISK", "EPOCH", "TOPIC", "ID"),
    ]
    assert [without_disk(line) for line in done.lines[1:3]] == [
        ["orders", "0", "0", "170", "4", "16.7KiB", "2", "sjhcX-UcQSKqZ9r7sV6gLw"],
        ["orders", "1", "0", "120", "3", "10.7KiB", "2", "sjhcX-UcQSKqZ9r7sV6gLw"],
    ]
    assert done.lines[-1].startswith("1 topic, 3 partitions, 8 segments, 29.8KiB, ")
    assert done.lines[-1].endswith(" on disk")


def test_a_log_directory_is_named_with_its_ids_and_what_fills_it(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (log_directory / "meta.properties").write_text(
        "version=1\nnode.id=7\ncluster.id=c\ndirectory.id=AAAAAAQAAAAAAAAAAAAAAQ\n"
    )
    files = [path for path in log_directory.rglob("*") if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    line = pylog_run("ls", log_directory).lines[-2]
    ids = "cluster c, node 7, directory id AAAAAAQAAAAAAAAAAAAAAQ"
    assert line.startswith(f"{log_directory}: {ids}, {total}B on disk (")
    [found] = json.loads(pylog_run("ls", log_directory, "--json").output)["logDirectories"]
    assert (found["clusterId"], found["nodeId"]) == ("c", 7)
    assert (found["directoryId"], found["diskBytes"]) == ("AAAAAAQAAAAAAAAAAAAAAQ", total)
    assert sum(found["kinds"].values()) == total


def test_internal_topics_are_listed(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("ls", golden_root.case("4.3.0/internal-logdir"))
    topics = {line.split()[0] for line in done.lines[1:-1]}
    assert {"__consumer_offsets", "__transaction_state", "__cluster_metadata", "orders"} <= topics


def test_deleted_topics_and_leftover_files_are_counted(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("ls", golden_root.case("4.3.0/leftovers"))
    assert done.status == 0
    assert "9 leftover files" in done.lines[1]
    assert done.lines[-3].startswith("not live (-delete, being deleted): ")
    assert done.lines[-1].endswith(
        "1 directory not live, 12 leftover files (.deleted, .cleaned, .swap)"
    )


def test_json_is_one_document_with_exact_sizes(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_log_start_offsets(log_directory, {("orders", 0): 4})
    done = pylog_run("ls", "--json", log_directory)
    found = json.loads(done.output)
    size = sum(len(batch.data) for batch in BATCHES)
    assert found["partitions"][1] == {
        "topic": "orders",
        "partition": 0,
        "logStartOffset": 4,
        "logEndOffset": 10,
        "segments": 1,
        "sizeInBytes": size,
        "leaderEpoch": 0,
        "topicId": None,
        "leftoverFiles": 0,
        "path": str(log_directory / "orders-0"),
        "findings": [],
        "notes": [],
        "diskBytes": sum(path.stat().st_size for path in (log_directory / "orders-0").iterdir()),
    }
    assert found["partitions"][0]["leaderEpoch"] is None
    assert found["notLive"] == []
    assert found["summary"]["partitions"] == 2


def test_a_damaged_tail_is_a_note_and_status_1(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_segment(log_directory / "orders-0", 0, BATCHES, tail=b"\xee" * 100)
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    row = done.lines[2]
    assert row.split()[:4] == ["orders", "0", "0", "?"]
    assert "the batches before that end at offset 10" in row
    assert "00000000000000000000.log at byte" in row
    assert done.lines[1].split()[:4] == ["old", "7", "0", "1"]
    assert done.lines[-1].endswith("1 finding")
    assert (
        json.loads(pylog_run("ls", "--json", log_directory).output)["partitions"][1]["logEndOffset"]
        is None
    )


def test_a_wrong_checksum_of_the_last_batch_is_a_note_and_the_end_is_reported(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_segment(log_directory / "orders-0", 0, [BATCHES[0], with_bad_crc(BATCHES[1])])
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    row = done.lines[2]
    assert row.split()[:4] == ["orders", "0", "0", "10"]
    assert "batch CRC stored 0x" in row
    assert f"00000000000000000000.log at byte {len(BATCHES[0].data)}" in row
    assert done.lines[-1].endswith("1 finding")


def test_a_damaged_checkpoint_is_a_note_and_the_row_stays(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (log_directory / "orders-0" / "leader-epoch-checkpoint").write_text("nonsense\n")
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    assert done.lines[2].split()[:4] == ["orders", "0", "0", "10"]
    assert "leader-epoch-checkpoint" in done.lines[2]


def test_index_files_without_their_log_are_a_note_and_status_1(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (log_directory / "orders-0" / "00000000000000000000.log").unlink()
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    assert done.lines[1].split()[:4] == ["old", "7", "0", "1"]
    assert done.lines[2].split()[:5] == ["orders", "0", "0", "?", "0"]
    assert "no .log file is here, but index files are" in done.lines[2]


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint"])
def test_a_side_file_that_is_not_a_file_is_a_note_and_the_row_stays(
    log_directory: Path, pylog_run: Callable[..., Outcome], name: str
) -> None:
    put(log_directory / "orders-0" / name, "fifo")
    with deadline(log_directory):
        done = pylog_run("ls", log_directory)
    assert done.status == 1
    assert done.lines[1].split()[:4] == ["old", "7", "0", "1"]
    assert done.lines[2].split()[:4] == ["orders", "0", "0", "10"]
    assert "not a regular file but a FIFO" in done.lines[2]


def test_the_end_is_reported_where_the_start_is_not(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (log_directory / "log-start-offset-checkpoint").write_bytes(b"nonsense")
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    assert [line.split()[:4] for line in done.lines[1:3]] == [
        ["old", "7", "?", "1"],
        ["orders", "0", "?", "10"],
    ]
    assert done.lines[-1].endswith("2 findings")


def test_a_partition_that_is_a_broken_link_is_a_row_with_a_note(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (log_directory / "orders-1").symlink_to(log_directory / "nowhere")
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    assert done.lines[3].split()[:5] == ["orders", "1", "?", "?", "0"]
    assert str(log_directory / "orders-1") in done.lines[3]


def test_where_no_partition_can_be_read_the_status_is_2(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for partition in (0, 1):
        (tmp_path / f"orders-{partition}").symlink_to(tmp_path / "nowhere")
    done = pylog_run("ls", tmp_path)
    assert done.status == 2
    assert [line.split()[:5] for line in done.lines[1:3]] == [
        ["orders", "0", "?", "?", "0"],
        ["orders", "1", "?", "?", "0"],
    ]


def test_a_partition_of_kafka_0_7_is_a_row_with_a_note(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (log_directory / "ancient-0").mkdir()
    (log_directory / "ancient-0" / "00000000000000000000.kafka").write_bytes(b"x")
    done = pylog_run("ls", log_directory)
    assert done.status == 1
    assert done.lines[1].split()[:5] == ["ancient", "0", "?", "?", "0"]
    assert "cannot read segments of Kafka 0.7 (.kafka files), only those of" in done.lines[1]
    assert done.lines[2].split()[:4] == ["old", "7", "0", "1"]


def test_a_torn_tail_is_not_a_finding(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    torn = batch_v2(plain_records(10, 5)).data[:-7]
    write_segment(log_directory / "orders-0", 0, BATCHES, tail=torn)
    done = pylog_run("ls", log_directory)
    assert done.status == 0
    assert done.lines[2].split()[3] == "10"


def test_replicas_of_two_brokers_are_listed_with_their_directories(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for broker in ("broker-1", "broker-2"):
        write_partition(tmp_path / broker, {0: BATCHES})
    done = pylog_run("ls", tmp_path / "broker-1", tmp_path / "broker-2")
    assert done.status == 0
    assert "DIRECTORY" in done.lines[0]
    assert [line.split()[-1] for line in done.lines[1:3]] == [
        str(tmp_path / "broker-1"),
        str(tmp_path / "broker-2"),
    ]


def test_a_partition_given_twice_is_listed_once(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("ls", log_directory, log_directory / "orders-0")
    assert done.lines[-1].startswith("2 topics, 2 partitions, 2 segments")


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_a_path_without_a_log_is_an_error(
    what: str, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("x")
    elif what == "empty":
        path.mkdir()
    done = pylog_run("ls", path)
    assert done.status == 2
    assert done.output == b""
    assert str(path) in done.error
    assert done.error.count("\n") == 1


_STYLES = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture
def listed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return the lines that ``ls`` prints to a terminal of some width, before it wraps them."""

    def listed(width: int, path: Path, *, status: int = 0, kind: str = "xterm") -> list[str]:
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", kind)
        assert run(["ls", str(path)]) == status
        return _STYLES.sub("", terminal.getvalue()).splitlines()

    return listed


def test_a_terminal_gets_a_table_and_the_findings_below(
    log_directory: Path, listed_at: Callable[..., list[str]]
) -> None:
    write_segment(log_directory / "orders-0", 0, BATCHES, tail=b"\xee" * 100)
    lines = listed_at(120, log_directory, status=1)
    assert any("───" in line for line in lines)
    assert any("1 finding" in line for line in lines)
    assert any(line.startswith("orders-0:") for line in lines)
    assert lines[-1].startswith("2 topics, 2 partitions")


def without_disk(line: str) -> list[str]:
    """Return the cells of a row, but for what the directory takes on the disk."""
    cells = line.split()
    return [*cells[:6], *cells[7:]]


def test_a_wide_terminal_shows_topic_ids(
    golden_root: GoldenRoot, listed_at: Callable[..., list[str]]
) -> None:
    lines = listed_at(140, golden_root.case("4.3.0/internal-logdir"))
    assert lines[0].split()[-2:] == ["TOPIC", "ID"]
    row = "__consumer_offsets 1 0 29 1 2.7KiB 0 dUZZMa5GRC6GJQeCyYyYVA"
    assert row.split() in [without_disk(line) for line in lines]


def test_a_terminal_of_80_columns_does_without_topic_ids(
    golden_root: GoldenRoot, listed_at: Callable[..., list[str]]
) -> None:
    lines = listed_at(80, golden_root.case("4.3.0/internal-logdir"))
    assert lines[0].split() == [
        *("TOPIC", "PARTITION", "START", "END", "SEGMENTS", "SIZE", "DISK", "EPOCH"),
    ]
    row = ["__consumer_offsets", "1", "0", "29", "1", "2.7KiB", "0"]
    assert row in [without_disk(line) for line in lines]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_name_that_is_too_long_for_the_terminal_goes_on_below_itself(
    kind: str, tmp_path: Path, listed_at: Callable[..., list[str]]
) -> None:
    topic = "a-long-name." * 20
    batch = batch_v2(plain_records(7, 1))
    write_partition(tmp_path, {7: [batch]}, name=f"{topic}-3")
    heading, _, first, *others = listed_at(80, tmp_path, kind=kind)
    below = next(at for at, line in enumerate(others) if line.startswith(str(tmp_path)))
    del others[below:]
    assert max(map(len, (heading, first, *others))) <= 80
    name, *numbers = first.split()
    assert numbers == ["3", "7", "8", "1", f"{len(batch.data)}B", "0"]
    assert name + "".join(others) == topic


def test_numbers_are_never_cut(tmp_path: Path, listed_at: Callable[..., list[str]]) -> None:
    offset = 10**18
    batch = batch_v2(plain_records(offset, 1))
    write_partition(tmp_path, {offset: [batch]}, name="orders-3")
    rows = [line.split() for line in listed_at(40, tmp_path)]
    assert ["orders", "3", str(offset), str(offset + 1), "1", f"{len(batch.data)}B", "0"] in rows


@pytest.mark.parametrize(
    ("arguments", "topics"),
    [
        (("--topic", "old"), ["old"]),
        (("--topic", "orders,old"), ["old", "orders"]),
        (("--topic", "orders", "--topic", "__state"), ["__state", "orders"]),
        (("--pattern", "^o.*s$"), ["orders"]),
        (("--pattern", "^__"), ["__state"]),
    ],
)
def test_topics_may_be_chosen(
    arguments: tuple[str, ...],
    topics: list[str],
    log_directory: Path,
    pylog_run: Callable[..., Outcome],
) -> None:
    write_partition(log_directory, {0: BATCHES}, name="__state-0")
    (log_directory / "gone-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    done = pylog_run("ls", log_directory, "--json", *arguments)
    assert (done.status, done.error) == (0, "")
    document = json.loads(done.output)
    assert sorted(each["topic"] for each in document["partitions"]) == topics
    assert (document["summary"]["topics"], document["notLive"]) == (len(topics), [])
