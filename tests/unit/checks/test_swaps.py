"""What a start puts in the place of segments is what was made from them, or it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.swaps import end_of_batches
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import Finding
    from tests.support.batches import Built

BATCHES = [batch_v2(plain_records(base, 5)) for base in range(0, 30, 5)]
OTHERS = [batch_v2(plain_records(base, 5, value_size=11)) for base in range(0, 60, 5)]
WITHOUT_SOME = batch_v2([each for each in plain_records(10, 5) if each.offset != 12])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", {0: BATCHES[:2], 10: BATCHES[2:4], 20: BATCHES[4:]})
    checkpoint = "0\n1\norders 0 30\n"
    (tmp_path / "logs" / "recovery-point-offset-checkpoint").write_text(checkpoint)
    mark_clean_shutdown(tmp_path / "logs")
    return tmp_path / "logs"


def put(logs: Path, base: int, content: bytes, state: str = ".swap") -> Path:
    path = segment_path(logs / "orders-0", base, f".log{state}")
    path.write_bytes(content)
    return path


def lost(logs: Path) -> list[Finding]:
    return [each for each in pylog.doctor(logs).findings if each.code == "lost_at_start"]


def copied_offsets(logs: Path) -> list[int]:
    pylog.repair_copy(logs, logs.parent / "copy")
    table = pylog.scan(logs.parent / "copy", columns=["offset", "value"]).to_table()
    assert set(map(len, table["value"].to_pylist())) == {10}
    return [int(each) for each in table["offset"].to_pylist()]


@pytest.mark.parametrize(
    ("base", "content", "first", "end"),
    [
        (0, OTHERS[:4], 0, 20),
        (10, OTHERS[2:4], 10, 20),
        (0, [BATCHES[0], OTHERS[1]], 5, 10),
        (0, OTHERS[8:10], 40, 41),  # behind all that it replaces
    ],
    ids=["of two segments", "of one", "in part", "behind the end"],
)
def test_a_file_of_other_records_is_a_loss(
    logs: Path, base: int, content: list[Built], first: int, end: int
) -> None:
    path = put(logs, base, joined(content))
    report = pylog.doctor(logs)
    [finding] = lost(logs)
    assert (finding.path, str(finding.effect)) == (str(path), "loses")
    assert (finding.next_offset, finding.end_offset) == (first, end)
    assert f"has other records than those, from offset {first} on" in finding.message
    many = "1 record" if end == first + 1 else f"{end - first} records"
    offsets = "offset 40" if end == first + 1 else f"offsets {first} to {end - 1}"
    loses = f"A broker that starts on this loses {many}: orders-0: {many}, {offsets}, "
    assert report.verdict.reasons[0].startswith(loses)
    assert copied_offsets(logs) == list(range(30))


@pytest.mark.parametrize(
    "content",
    [
        BATCHES[:4],
        [BATCHES[0], BATCHES[3]],
        [BATCHES[0], WITHOUT_SOME, BATCHES[3]],
    ],
    ids=["all", "without batches", "without a record"],
)
def test_a_file_that_compaction_has_made_is_none(logs: Path, content: list[Built]) -> None:
    put(logs, 0, joined(content))
    assert lost(logs) == []


def test_the_order_of_the_batches_that_it_was_made_from_does_not_matter(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 0)
    path.write_bytes(joined([BATCHES[1], BATCHES[0]]))
    put(logs, 0, joined(BATCHES[:2]))
    assert lost(logs) == []


@pytest.mark.parametrize(("offset", "end"), [(2**31 - 1, 2**31), (2**31, 5)])
def test_what_lies_too_far_up_for_the_name_of_a_file_is_damage(
    tmp_path: Path, offset: int, end: int
) -> None:
    path = segment_path(tmp_path, 0)
    path.write_bytes(joined([BATCHES[0], batch_v2(plain_records(offset, 1))]))
    assert end_of_batches(str(path)) == end


def test_several_files_are_each_looked_at(logs: Path) -> None:
    put(logs, 0, joined(BATCHES[:2]))
    put(logs, 10, joined(OTHERS[2:4]))
    [finding] = lost(logs)
    assert (finding.next_offset, finding.end_offset) == (10, 20)
    assert copied_offsets(logs) == list(range(30))


def test_another_record_is_found_behind_any_number_of_batches_that_compaction_rewrote(
    tmp_path: Path,
) -> None:
    count = 1_200  # each of two records, of which the file has the second
    batches = [plain_records(2 * place, 2) for place in range(count)]
    write_partition(tmp_path, {0: list(map(batch_v2, batches))}, name="orders-0")
    kept = [batch_v2(each[1:], base_offset=each[0].offset) for each in batches]
    put(tmp_path, 0, joined(kept))
    assert lost(tmp_path) == []
    other = batches[-1][1]._replace(value=b"another")
    put(tmp_path, 0, joined([*kept[:-1], batch_v2([other], base_offset=2 * count - 2)]))
    [finding] = lost(tmp_path)
    assert (finding.next_offset, finding.end_offset) == (2 * count - 1, 2 * count)


def test_of_a_segment_that_was_split_an_empty_part_is_lost_alone(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: BATCHES})
    for base, content in ((0, []), (10, BATCHES[2:4]), (20, BATCHES[4:])):
        put(tmp_path, base, joined(content))
    [finding] = lost(tmp_path)
    assert (finding.next_offset, finding.end_offset) == (0, 10)


def test_what_is_to_be_deleted_tells_of_another_file_too(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 10)
    put(logs, 10, joined(OTHERS[2:4]))
    path.rename(f"{path}.deleted")
    [finding, *_] = lost(logs)
    assert (finding.next_offset, finding.end_offset) == (10, 20)
    assert copied_offsets(logs) == list(range(30))


def test_a_file_that_does_not_count_is_deleted_and_no_loss(logs: Path) -> None:
    put(logs, 10, joined(OTHERS[2:4]))
    put(logs, 0, joined(BATCHES[:2]), ".cleaned")
    assert lost(logs) == []


class TestDeleted:
    """Files that alone hold offsets of the log, and that a start deletes."""

    def test_all_of_a_log(self, logs: Path) -> None:
        for path in sorted((logs / "orders-0").glob("*.log")):
            path.rename(f"{path}.deleted")
        found = lost(logs)
        assert [(each.next_offset, each.end_offset) for each in found] == [
            *((0, 10), (10, 20), (20, 30))
        ]
        assert {each.broker_action for each in found} == {"it deletes the file"}
        assert all("--repair-to" in each.advice for each in found)
        verdict = pylog.doctor(logs).verdict
        assert [(each.from_offset, each.to_offset) for each in verdict.loses_records][:3] == [
            *((0, 10), (10, 20), (20, 30))
        ]
        assert verdict.lost_already == []
        assert copied_offsets(logs) == list(range(30))

    def test_all_of_a_log_of_which_no_checkpoint_knows(self, logs: Path) -> None:
        (logs / "recovery-point-offset-checkpoint").unlink()
        self.test_all_of_a_log(logs)

    def test_a_middle_segment(self, logs: Path) -> None:
        path = segment_path(logs / "orders-0", 10)
        path.rename(f"{path}.deleted")
        [finding] = lost(logs)
        assert (finding.next_offset, finding.end_offset) == (10, 20)
        assert pylog.doctor(logs).verdict.lost_already == []
        assert copied_offsets(logs) == list(range(30))

    def test_a_middle_segment_amid_a_compaction_that_does_not_count(self, logs: Path) -> None:
        put(logs, 0, joined(BATCHES[:2]), ".cleaned")
        put(logs, 10, joined(BATCHES[2:]))
        path = segment_path(logs / "orders-0", 10)
        path.rename(f"{path}.deleted")
        assert [(each.next_offset, each.end_offset) for each in lost(logs)] == [(10, 20)]
        assert copied_offsets(logs) == list(range(30))

    @pytest.mark.parametrize("state", ["stray", "future"])
    def test_in_a_directory_that_is_not_live(self, logs: Path, state: str) -> None:
        write_partition(logs, {0: BATCHES}, name="clicks-0")
        place = (logs / "orders-0").rename(logs / f"orders-0.{1:032x}-{state}")
        path = segment_path(place, 10)
        path.rename(f"{path}.deleted")
        assert [(each.next_offset, each.end_offset) for each in lost(logs)] == [(10, 20)]

    def test_a_copy_of_a_live_segment_is_no_loss(self, logs: Path) -> None:
        content = segment_path(logs / "orders-0", 10).read_bytes()
        put(logs, 10, content, ".deleted")
        assert lost(logs) == []
        assert "leftover_file" in {each.code for each in pylog.doctor(logs).findings}


def test_segments_after_it_are_not_lost_by_what_the_replaced_file_said(logs: Path) -> None:
    put(logs, 0, joined(BATCHES[:2]))
    segment_path(logs / "orders-0", 0).write_bytes(joined(BATCHES[4:]))  # another segment's
    write_topic_id(logs / "orders-0", TOPIC_ID_TEXT)
    write_meta_properties(logs)
    write_metadata_log(logs, [topic_record("orders"), partition_record(0, 1, (1,))])
    assert lost(logs) == []


@pytest.mark.parametrize("name", ["-1.log.swap", "0.log.swap.swap"])
def test_one_that_no_offset_of_the_log_names_is_not_read(logs: Path, name: str) -> None:
    (logs / "orders-0" / name).write_bytes(joined(BATCHES[:4]))
    assert lost(logs) == []


def test_one_of_another_name_puts_an_empty_segment_in_place(logs: Path) -> None:
    (logs / "orders-0" / f"{10:020d}.copy.log.swap").write_bytes(joined(BATCHES[2:4]))
    [finding] = lost(logs)
    assert f"cuts {10:020d}.log off at byte 0" in finding.message


def test_what_only_a_replaced_file_of_another_segment_has_is_lost(logs: Path) -> None:
    put(logs, 0, b"")
    segment_path(logs / "orders-0", 0).write_bytes(joined(BATCHES[2:4]))
    segment_path(logs / "orders-0", 10).write_bytes(joined(BATCHES[:2]))
    [finding] = lost(logs)
    assert (finding.next_offset, finding.end_offset) == (10, 20)


def test_a_swap_may_have_what_an_emptied_segment_has_lost(logs: Path) -> None:
    segment_path(logs / "orders-0", 10).write_bytes(b"")
    put(logs, 0, joined(BATCHES[:4]))
    assert lost(logs) == []
    assert copied_offsets(logs) == list(range(30))
