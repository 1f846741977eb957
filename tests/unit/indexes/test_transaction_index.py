from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptIndexError, LogLoadingError
from pylog.files.durable_io import DurableIO
from pylog.files.transaction_index import TransactionIndexEntry
from pylog.indexes.transaction_index import TransactionIndex
from tests.support.golden import golden_partitions
from tests.support.kafka_dump import dumped_files, not_dumped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted
    from tests.support.golden import GoldenRoot

NAME = "00000000000000000000.txnindex"


def entry(
    producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
) -> TransactionIndexEntry:
    return TransactionIndexEntry(0, producer_id, first_offset, last_offset, last_stable_offset)


FOUR = [entry(0, 0, 10, 11), entry(1, 5, 15, 13), entry(2, 18, 35, 25), entry(3, 32, 50, 40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def index(path: Path) -> TransactionIndex:
    return TransactionIndex(path, 0, DurableIO())


def append_all(index: TransactionIndex, entries: list[TransactionIndexEntry]) -> None:
    for each in entries:
        index.append(each)


# ---- appending


def test_file_appears_with_the_first_entry(index: TransactionIndex, path: Path) -> None:
    index.flush()
    index.truncate_to(0)
    index.reset()
    index.sanity_check()
    assert index.entries() == []
    assert index.collect_aborted_transactions(0, 100) == ([], False)
    assert (path.exists(), index.exists_on_disk) == (False, False)
    index.append(entry(1, 0, 29, 8))
    index.flush()
    assert (path.exists(), index.exists_on_disk) == (True, True)
    assert path.read_bytes().hex() == (
        "000000000000000000010000000000000000000000000000001d0000000000000008"
    )


def test_reopened_index_is_appended_to_at_its_end(index: TransactionIndex, path: Path) -> None:
    append_all(index, FOUR[:3])
    index.close()
    again = TransactionIndex(path, 0, DurableIO())
    again.append(FOUR[3])
    assert again.entries() == FOUR
    assert path.stat().st_size == 4 * 34
    again.release()
    assert again.entries() == FOUR


def test_torn_entry_at_the_end_is_written_over(index: TransactionIndex, path: Path) -> None:
    append_all(index, FOUR[:1])
    index.close()
    path.write_bytes(path.read_bytes() + b"\x55" * 33)
    again = TransactionIndex(path, 0, DurableIO())
    assert again.entries() == FOUR[:1]
    again.append(FOUR[1])
    assert again.entries() == FOUR[:2]
    again.release()
    assert again.entries() == FOUR[:2]


@pytest.mark.parametrize("last_offset", [15, 14, 0])
@pytest.mark.parametrize("is_reopened", [False, True])
def test_last_offsets_must_go_up(
    index: TransactionIndex, path: Path, *, is_reopened: bool, last_offset: int
) -> None:
    append_all(index, FOUR[:2])
    if is_reopened:
        index.close()
        index = TransactionIndex(path, 0, DurableIO())
    with pytest.raises(
        LogLoadingError, match=rf"x: .*offset {last_offset} cannot follow one with 15"
    ):
        index.append(entry(0, 0, last_offset, 11))
    assert index.entries() == FOUR[:2]
    assert path.stat().st_size == 68


# ---- collecting


def test_collected_transactions_have_both_their_offsets(index: TransactionIndex) -> None:
    append_all(index, FOUR)
    found = index.collect_aborted_transactions(11, 32)
    assert found == ([(1, 5, 15), (2, 18, 35)], True)


# ---- truncation


@pytest.mark.parametrize(
    ("offset", "kept"),
    [(51, 4), (50, 3), (36, 3), (35, 2), (16, 2), (15, 1), (11, 1), (10, 0), (0, 0)],
)
def test_truncation_removes_markers_at_or_above_the_offset(
    index: TransactionIndex, path: Path, offset: int, kept: int
) -> None:
    append_all(index, FOUR)
    index.truncate_to(offset)
    assert index.entries() == FOUR[:kept]
    assert path.stat().st_size == kept * 34
    append_all(index, FOUR[kept:])
    index.release()
    assert index.entries() == FOUR


def test_truncation_of_an_index_that_was_not_read_yet_reads_it(
    index: TransactionIndex, path: Path
) -> None:
    append_all(index, FOUR)
    index.close()
    TransactionIndex(path, 0, DurableIO()).truncate_to(20)
    assert path.stat().st_size == 68


def test_resetting_empties_the_file(index: TransactionIndex, path: Path) -> None:
    append_all(index, FOUR)
    index.reset()
    assert index.entries() == []
    assert path.read_bytes() == b""
    index.append(FOUR[0])
    assert index.entries() == FOUR[:1]


def test_entries_given_out_are_the_callers(index: TransactionIndex) -> None:
    append_all(index, FOUR[:2])
    index.entries().clear()
    assert index.entries() == FOUR[:2]


# ---- checks


def test_index_of_a_later_segment_does_not_pass_the_check(
    index: TransactionIndex, path: Path
) -> None:
    append_all(index, FOUR)
    index.sanity_check()
    index.close()
    later = TransactionIndex(path, 100, DurableIO())
    with pytest.raises(
        CorruptIndexError, match=r"txnindex at byte 0: .* last offset 10, expected at least 100 "
    ):
        later.sanity_check()
    later.reset()
    later.sanity_check()
    assert path.read_bytes() == b""


def test_check_looks_at_the_file_as_it_is(index: TransactionIndex, path: Path) -> None:
    append_all(index, FOUR)
    content = bytearray(path.read_bytes())
    content[1] = 1  # the first entry's version
    path.write_bytes(content)
    with pytest.raises(CorruptIndexError, match=r" at byte 0: .* has version 1, expected 0"):
        index.sanity_check()


# ---- names


def test_renamed_index_is_written_under_its_new_name(index: TransactionIndex, path: Path) -> None:
    append_all(index, FOUR[:2])
    target = path.with_suffix(".txnindex.deleted")
    index.rename_to(target, missing_ok=True)
    assert (index.path, path.exists()) == (str(target), False)
    index.append(FOUR[2])
    index.release()
    assert index.entries() == FOUR[:3]
    assert target.stat().st_size == 102


def test_renaming_an_index_without_file_gives_the_file_to_come_its_name(
    index: TransactionIndex, path: Path
) -> None:
    target = path.with_suffix(".renamed")
    index.rename_to(target, missing_ok=True)
    assert not target.exists()
    index.append(FOUR[0])
    assert target.stat().st_size == 34
    assert not path.exists()


def test_deleting_says_whether_there_was_a_file(index: TransactionIndex, path: Path) -> None:
    assert not TransactionIndex(path, 0, DurableIO()).delete_if_exists()
    index.append(FOUR[0])
    assert index.delete_if_exists()
    assert not path.exists()
    assert not index.delete_if_exists()
    assert index.entries() == []
    with pytest.raises(ValueError, match="has been deleted"):
        index.append(FOUR[0])
    assert not path.exists()


def test_a_closed_index_is_read_no_more(index: TransactionIndex, path: Path) -> None:
    append_all(index, FOUR[:2])
    index.close()
    index.close()
    for use in (index.entries, lambda: index.append(FOUR[2]), index.reset):
        with pytest.raises(ValueError, match=r"\.txnindex is closed$"):
            use()
    assert path.stat().st_size == 68


# ---- brokers


@pytest.mark.parametrize("partition_id", golden_partitions())
def test_index_files_of_brokers_hold_what_kafka_dumps_and_are_written_alike(
    golden_root: GoldenRoot, tmp_path: Path, counted: Counted, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    lines = dumped_files(partition)
    names = {path.name for path in partition.directory.glob("*.txnindex")} & lines.keys()
    files = sorted(names - not_dumped(partition))
    for name in files:
        kafkas = [
            TransactionIndexEntry(
                int(line["version"]),
                int(line["producerId"]),
                int(line["firstOffset"]),
                int(line["lastOffset"]),
                int(line["lastStableOffset"]),
            )
            for line in lines[name]
        ]
        source = partition.directory / name
        loaded = TransactionIndex(source, int(name[:20]), DurableIO())
        loaded.sanity_check()
        assert loaded.entries() == kafkas, name
        fresh = TransactionIndex(tmp_path / name, int(name[:20]), DurableIO())
        append_all(fresh, kafkas)
        fresh.close()
        assert (tmp_path / name).read_bytes() == source.read_bytes(), name
    counted("transaction indexes of brokers", {"files": len(files)})
