"""A part of a log directory becomes one of its own; random ranges are in tests/property."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.comparison.replica_log import ReplicaLog
from pylog.errors import CorruptRecordError, LogDirectoryError, OffsetOutOfRangeError
from pylog.jobs import extract
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.damage import flip
from tests.support.log_files import segment_path, tree, write_high_watermarks, write_partition
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.discovery import PartitionDirectory


def test_a_copy_of_all_has_the_same_batches_and_side_files(source: Path, tmp_path: Path) -> None:
    before = tree(source)
    done = extract(source, to=tmp_path / "copy")
    assert tree(source) == before
    assert done.cut_transactions == []
    for each in done.partitions:
        name = f"{each.topic}-{each.partition}"
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            for path in sorted((source / name).glob(f"*{suffix}")):
                copied = tmp_path / "copy" / name / path.name
                assert copied.read_bytes() == path.read_bytes(), path
        for file in ("leader-epoch-checkpoint", "partition.metadata"):
            assert (tmp_path / "copy" / name / file).read_bytes() == (
                source / name / file
            ).read_bytes()
    identity = "meta.properties"
    assert (tmp_path / "copy" / identity).read_bytes() == (source / identity).read_bytes()
    assert list(pylog.doctor(tmp_path / "copy").findings) == []


def test_whole_batches_are_copied_and_the_start_is_exact_all_the_same(
    source: Path, tmp_path: Path
) -> None:
    batches = pylog.read_table(source, "batches", topics=["orders"]).to_pylist()
    first = next(each for each in batches if each["partition"] == 0 and each["records"] > 2)
    start, end = first["base_offset"] + 1, first["last_offset"]
    done = extract(
        source, to=tmp_path / "copy", topics=["orders"], partitions=[0], start=start, end=end
    )
    [part] = done.partitions
    assert (part.start_offset, part.end_offset) == (start, first["last_offset"] + 1)
    assert (part.batches, part.rewritten_batches) == (1, 0)
    expected = scanned(source, assign={"orders": [0]}, start=start, end=part.end_offset)
    assert scanned(tmp_path / "copy") == expected


def test_positions_may_differ_by_partition_and_may_be_times(source: Path, tmp_path: Path) -> None:
    done = extract(
        source,
        to=tmp_path / "copy",
        topics=["orders"],
        start={("orders", 0): 5},
        end={("orders", 1): 7, ("orders", 0): 9},
        exact=True,
    )
    assert [(each.start_offset, each.end_offset) for each in done.partitions] == [(5, 9), (0, 7)]
    early = pylog.Timestamp(0)
    everything = extract(source, to=tmp_path / "times", topics=["orders"], start=early)
    assert [each.start_offset for each in everything.partitions] == [0, 0]


def test_a_dry_run_writes_nothing_and_says_the_same(source: Path, tmp_path: Path) -> None:
    made = partial(extract, source, to=tmp_path / "copy", topics=["orders"], start=3, end=30)
    planned = made(exact=True, dry_run=True)
    assert list(tmp_path.iterdir()) == []
    done = made(exact=True)
    assert [each[:5] for each in planned.partitions] == [each[:5] for each in done.partitions]
    assert planned.cut_transactions == done.cut_transactions
    assert (planned.is_written, done.is_written) == (False, True)


def test_what_makes_no_sense_is_refused_and_nothing_is_made(source: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    with pytest.raises(LogDirectoryError, match="not empty"):
        extract(source, to=full)
    with pytest.raises(OffsetOutOfRangeError):
        extract(source, to=tmp_path / "copy", topics=["orders"], end=10_000)
    with pytest.raises(ValueError, match="starts at offset 9 and ends at 4"):
        extract(source, to=tmp_path / "copy", topics=["orders"], start=9, end=4)
    with pytest.raises(ValueError, match="expected one of name, include, abort"):
        extract(source, to=tmp_path / "copy", transactions="drop")
    assert [each.name for each in tmp_path.iterdir()] == ["full"]


def test_a_copy_does_not_lie_in_its_source(source: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(source, own, copy_function=shutil.copy)
    with pytest.raises(LogDirectoryError):
        extract(own, to=own / "copy")


def test_damage_in_the_range_is_refused_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(source / "orders-0", damaged / "orders-0", copy_function=shutil.copy)
    log = next((damaged / "orders-0").glob("*.log"))
    log.chmod(0o644)
    flip(log, 80)
    with pytest.raises(CorruptRecordError) as caught:
        extract(damaged, to=tmp_path / "copy")
    assert "repair-to" in caught.value.__notes__[0]
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("hole", [5, 2**31 - 2, 2**31 - 1, 2**31, 2**40])
def test_a_cut_ends_where_it_says_though_nothing_is_near(hole: int, tmp_path: Path) -> None:
    segments = {
        0: [batch_v2(plain_records(0, 3))],
        3 + hole: [batch_v2(plain_records(3 + hole, 2))],
    }
    write_partition(tmp_path / "source", segments, name="t-0")
    for end in (3 + hole, 4 + hole):
        to = tmp_path / str(end)
        [part] = extract(tmp_path / "source", to=to, topics=["t"], end=end, exact=True).partitions
        assert part.end_offset == end
        (log,) = pylog.open_directory(to / "t-0")
        assert log.log_end_offset == end
        assert [each.offset for each in scanned(to)] == [0, 1, 2, *range(3 + hole, end)]
        assert not pylog.doctor(to).gone


@pytest.mark.parametrize(
    ("start", "end", "missing"),
    [
        (0, 60, [(20, 40)]),
        (25, 60, [(25, 40)]),
        (0, 30, [(20, 30)]),
        (22, 33, [(22, 33)]),
        (40, 60, []),
        (0, 20, []),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_what_the_source_has_lost_of_the_range_is_told(
    tmp_path: Path, start: int, end: int, missing: list[tuple[int, int]], *, exact: bool
) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 60, 10)]
    write_partition(tmp_path / "source", {0: batches[:2], 40: batches[4:]}, name="t-0")
    made = partial(extract, tmp_path / "source", topics=["t"], start=start, end=end, exact=exact)
    planned, done = (
        made(to=tmp_path / str(dry_run), dry_run=dry_run).partitions for dry_run in (True, False)
    )
    assert [list(each.missing) for each in (*planned, *done)] == [missing] * 2


def test_what_a_cleaner_took_out_is_not_lost(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 60, 10)]
    write_partition(tmp_path / "source", {0: batches[:2], 40: batches[4:]}, name="t-0")
    (tmp_path / "source" / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 50\n")
    [part] = extract(tmp_path / "source", to=tmp_path / "copy", topics=["t"]).partitions
    assert part.missing == ()


@pytest.mark.parametrize("is_on_its_way_out", [False, True])
def test_a_segment_of_a_compacted_log_whose_index_alone_is_left_is_lost(
    tmp_path: Path, *, is_on_its_way_out: bool
) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 60, 10)]
    directory = write_partition(tmp_path / "source", {0: batches[:2], 40: batches[4:]}, name="t-0")
    (tmp_path / "source" / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 60\n")
    (directory / f"{20:020d}.index").touch()
    if is_on_its_way_out:  # a cleaner was killed while it removed what it had cleaned
        (directory / f"{20:020d}.log.deleted").touch()
    [part] = extract(tmp_path / "source", to=tmp_path / "copy", topics=["t"]).partitions
    assert part.missing == (() if is_on_its_way_out else ((20, 40),))


def test_segments_of_a_compacted_log_of_which_little_is_left_are_cleaned_or_lost(
    tmp_path: Path,
) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 80, 10)]
    segments = {20: batches[2:4], 60: batches[6:]}
    directory = write_partition(tmp_path / "source", segments, name="t-0")
    (tmp_path / "source" / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 60\n")

    def missing(start: int | str = "earliest", end: int | str = "latest") -> object:
        to = tmp_path / "copy"
        source = tmp_path / "source"
        done = extract(source, to=to, topics=["t"], start=start, end=end, dry_run=True)
        return done.partitions[0].missing

    assert missing() == ()
    (directory / f"{40:020d}.snapshot").touch()
    assert missing() == ()
    (directory / f"{50:020d}.snapshot").touch()
    assert missing() == ((40, 60),)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert missing() == ((0, 20), (40, 60))
    assert missing(start=30, end=70) == ((40, 60),)
    (tmp_path / "source" / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 30\n")
    (directory / f"{40:020d}.snapshot").unlink()
    assert missing(start=30) == ((40, 60),)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("replication-offset-checkpoint", "0\n1\nt 0 55\n"),
        ("recovery-point-offset-checkpoint", "0\n1\nt 0 55\n"),
        (f"t-0/{55:020d}.snapshot", ""),
        (f"t-0/{55:020d}.index", ""),
    ],
)
def test_what_the_source_has_lost_behind_its_last_batch_is_told(
    tmp_path: Path, name: str, text: str
) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 40, 10)]
    write_partition(tmp_path / "source", {0: batches}, name="t-0")
    (tmp_path / "source" / name).write_text(text)
    lost = ((40, 55),)
    for number, (asked, missing) in enumerate(
        [
            ({}, lost),
            ({"end": pylog.Timestamp(2**60)}, lost),
            ({"end": {"t": 40}}, ()),
            ({"end": 30}, ()),
        ]
    ):
        to = tmp_path / f"copy-{number}"
        [part] = extract(tmp_path / "source", to=to, topics=["t"], **asked).partitions  # type: ignore[arg-type]
        assert part.missing == missing, asked


def test_what_a_broker_appends_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 40, 10)]
    log = segment_path(write_partition(tmp_path / "source", {0: batches[:2]}, name="t-0"), 0)

    def append_and_look(directory: PartitionDirectory) -> ReplicaLog:
        log.write_bytes(joined(batches))
        write_high_watermarks(tmp_path / "source", {("t", 0): 40})
        return ReplicaLog(directory)

    monkeypatch.setattr("pylog.recovery.partition_copy.ReplicaLog", append_and_look)
    [part] = extract(tmp_path / "source", to=tmp_path / "copy", topics=["t"]).partitions
    assert (part.end_offset, part.missing) == (20, ())
    assert log.stat().st_size == len(joined(batches))


def test_the_clusters_metadata_are_no_topic_to_extract(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="first-aid"):
        extract(source, to=tmp_path / "copy", topics=["__cluster_metadata"])
    assert list(tmp_path.iterdir()) == []
