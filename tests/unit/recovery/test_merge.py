"""`merge` on small replicas: what comes from where, what is missing, what is refused."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.comparison.replica_log import ReplicaLog
from pylog.errors import (
    DivergedReplicasError,
    LogDirectoryError,
    LogLockedError,
    UnknownTopicOrPartitionError,
)
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.directory_lock import DirectoryLock
from pylog.files.leader_epochs import read_leader_epoch_checkpoint
from pylog.jobs import merge
from tests.support.batches import (
    COMMIT,
    Built,
    Stored,
    batch_v2,
    marker,
    message,
    plain_records,
    wrapper,
)
from tests.support.damage import with_base_offset, with_flip
from tests.support.killed_program import crashed_at
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    tree,
    write_high_watermarks,
    write_log_start_offsets,
    write_partition,
    write_recovery_points,
    write_topic_id,
)
from tests.support.metadata_log import partition_record, topic_record, write_metadata_log
from tests.support.replica_histories import TOPIC_ID, stored_batches, write_epochs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pylog.comparison.replica_log import Rows
    from pylog.log_file.segment_windows import WindowMemory
    from pylog.results import MergedPartition
    from tests.conftest import HowMany


def log(start: int, end: int, epoch: int = 0, *, step: int = 5) -> list[Built]:
    return [batch_v2(plain_records(at, step), leader_epoch=epoch) for at in range(start, end, step)]


def replica(
    log_directory: Path,
    segments: Mapping[int, Sequence[Built]],
    epochs: list[tuple[int, int]] | None = None,
    *,
    node: int | None = None,
    name: str = "orders-0",
    topic_id: str = TOPIC_ID,
) -> Path:
    directory = write_partition(
        log_directory, segments, name=name, with_index=False, with_time_index=False
    )
    write_epochs(directory, [(0, 0)] if epochs is None else epochs)
    write_topic_id(directory, topic_id)
    if node is not None:
        text = f"version=1\ncluster.id=c\nnode.id={node}\n"
        (log_directory / "meta.properties").write_text(text)
    return directory


def diverged(tmp_path: Path) -> list[Path]:
    """Write the state that an unclean election leaves: the new leader lacks a marker.

    As in three real clusters (3.9, 4.3, 4.4): producer 1 wrote offsets 40 to 44 and committed at
    45, which the broker that was elected then did not have.
    """
    common = log(0, 40, step=10)
    open_one = batch_v2(
        plain_records(40, 5),
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    old = [*common[1:], open_one, marker(45, COMMIT), *log(46, 76, step=10)]
    new = [*common[1:], open_one, *log(45, 70, 3)]
    loser = {0: common[:1], 10: old}
    return [
        replica(tmp_path / "1", loser),
        replica(tmp_path / "2", loser),
        replica(tmp_path / "3", {0: common[:1], 10: new}, [(0, 0), (3, 45)]),
    ]


def only(*paths: Path, to: Path, **options: object) -> MergedPartition:
    (merged,) = merge(*paths, to=to, **options).partitions  # type: ignore[arg-type]
    return merged


def ranges(merged: MergedPartition) -> list[tuple[int, int, str, str]]:
    return [
        (each.start_offset, each.end_offset, each.source.split("/")[-2], each.rule)
        for each in merged.ranges
    ]


def gaps(merged: MergedPartition) -> list[tuple[int, int | None]]:
    return [(each.start_offset, each.end_offset) for each in merged.gaps]


Change = Callable[[bytes, int], bytes]
"""What becomes of a ``.log`` file whose last batch begins at a byte."""


def flipped(at: int) -> Change:
    return lambda data, last: (
        data[: last + at] + bytes([data[last + at] ^ 4]) + data[last + at + 1 :]
    )


TAILS: dict[str, tuple[Change, list[tuple[int, int | None]]]] = {
    "base offset": (flipped(7), [(20, None)]),
    "a far base offset": (flipped(1), [(20, None)]),
    "a large size": (flipped(8), [(20, None)]),
    "a size": (flipped(11), [(20, None)]),
    "format": (flipped(16), [(20, None)]),
    "checksum": (flipped(18), [(20, None)]),
    "last offset delta": (flipped(26), [(20, None)]),
    "a record": (flipped(90), [(20, None)]),
    "zeros over the header": (
        lambda data, last: data[:last] + bytes(16) + data[last + 16 :],
        [(20, None)],
    ),
    "zeros over all of it": (lambda data, last: data[:last] + bytes(len(data) - last), []),
    "torn": (lambda data, last: data[:-5], []),
    "a torn header": (lambda data, last: data[: last + 30], []),
    "preallocated": (lambda data, last: data + bytes(4096), []),
}


@pytest.mark.parametrize(("change", "expected"), TAILS.values(), ids=list(TAILS))
@pytest.mark.parametrize("epoch", [0, 3])
def test_a_batch_that_is_damaged_at_the_end_is_missing(
    tmp_path: Path, change: Change, expected: list[tuple[int, int | None]], epoch: int
) -> None:
    """As `pylog doctor` has it: an error where batches are damaged, and not where one is torn."""
    batches = log(0, 25, epoch)
    path = segment_path(replica(tmp_path / "a", {0: batches}, [(epoch, 0)]), 0)
    path.write_bytes(change(path.read_bytes(), sum(len(each.data) for each in batches[:4])))
    merged = only(path.parent, to=tmp_path / "out")
    assert gaps(merged) == expected
    has_error = any(
        each.code == "damaged_batches" for each in pylog.doctor(path.parent.parent).findings
    )
    assert has_error is bool(expected)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((25, 20), [(20, None)]),
        ((25, 25), []),  # the other one has it
        ((25, 40), []),
        ((40, 30), [(30, None)]),  # only a part of it
        ((40, 40), []),
    ],
)
def test_what_is_damaged_at_the_end_may_be_intact_elsewhere(
    tmp_path: Path, ends: tuple[int, int], expected: list[tuple[int, int | None]]
) -> None:
    ones = [replica(tmp_path / str(at), {0: log(0, end)}) for at, end in enumerate(ends)]
    data = segment_path(ones[0], 0).read_bytes()
    start = sum(len(each.data) for each in log(0, 20))
    segment_path(ones[0], 0).write_bytes(data[:start] + b"\x55" * (len(data) - start))
    assert gaps(only(*ones, to=tmp_path / "out")) == expected


ORDERS = ("orders", 0)
Harm = Callable[[Path], object]
"""What is done to a partition directory that has offsets 0 to 19, and is in a log directory."""


def _as_folder(path: Path) -> None:
    path.mkdir()
    path.with_suffix(".index").write_bytes(bytes(8))


def _without_logs(one: Path, epochs: list[tuple[int, int]]) -> None:
    segment_path(one, 0).unlink()
    write_epochs(one, epochs)


def _first_is_gone(one: Path) -> None:
    segment_path(one, 0).rename(segment_path(one, 10))
    segment_path(one, 10).write_bytes(b"".join(each.data for each in log(10, 20)))
    segment_path(one, 0, ".index").touch()
    (one / "leader-epoch-checkpoint").unlink()


BESIDE: dict[str, tuple[Harm, list[tuple[int, int | None]]]] = {
    "recovery point": (lambda one: write_recovery_points(one.parent, {ORDERS: 25}), [(20, 25)]),
    "high watermark": (lambda one: write_high_watermarks(one.parent, {ORDERS: 25}), [(20, 25)]),
    "producer snapshot": (lambda one: segment_path(one, 25, ".snapshot").touch(), [(20, 25)]),
    "an index alone": (lambda one: segment_path(one, 25, ".index").touch(), [(20, 25)]),
    "a folder": (lambda one: _as_folder(segment_path(one, 20)), [(20, None)]),
    "a link": (lambda one: segment_path(one, 20).symlink_to("gone"), [(20, None)]),
    "no log at all": (lambda one: _without_logs(one, [(0, 0), (2, 20)]), [(0, 20)]),
    "the first index alone": (_first_is_gone, [(0, 10)]),
    "all as it is": (lambda one: write_recovery_points(one.parent, {ORDERS: 20}), []),
}


@pytest.mark.parametrize(("harm", "expected"), BESIDE.values(), ids=list(BESIDE))
def test_what_is_beside_a_log_tells_how_far_it_went(
    tmp_path: Path, harm: Harm, expected: list[tuple[int, int | None]]
) -> None:
    one = replica(tmp_path / "a", {0: log(0, 20)})
    harm(one)
    assert gaps(only(one, to=tmp_path / "out")) == expected


@pytest.mark.parametrize("has_directory", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
def test_checkpoints_name_a_replica_whose_directory_is_gone(
    tmp_path: Path, *, has_directory: bool, is_clean: bool
) -> None:
    one, other = tmp_path / "1", tmp_path / "2"
    replica(one, {0: log(0, 20)}, name="other-0")
    write_high_watermarks(one, {ORDERS: 25, ("other", 0): 20})
    if has_directory:
        (one / "orders-0").mkdir()  # without a file
    if is_clean:
        mark_clean_shutdown(one)
    replica(other, {0: log(0, 20)})
    assert gaps(only(one, other, to=tmp_path / "both", topics=["orders"])) == [(20, 25)]
    alone = merge(one, to=tmp_path / "alone")
    found = {each.topic: gaps(each) for each in alone.partitions}
    assert found == ({"orders": [(0, 25)], "other": []} if is_clean else {"other": []})
    assert len(alone.notes) == (not is_clean)
    assert all(f"{one / 'orders-0'} is missing" in each for each in alone.notes)


@pytest.mark.parametrize(
    ("state", "has_live", "end"),
    [
        ("future", True, 40),
        ("future", False, 40),
        ("stray", True, 20),
        ("delete", True, 20),
    ],
)
def test_a_copy_that_was_moved_to_another_disk_is_a_replica(
    tmp_path: Path, state: str, *, has_live: bool, end: int
) -> None:
    one = tmp_path / "1"
    replica(one, {0: log(0, 10)}, name="other-0")
    if has_live:
        replica(one, {0: log(0, 20)})
    aside = replica(one, {0: log(0, 40)}, name=f"orders-0.{1:032x}-{state}")
    done = merge(one, to=tmp_path / "out")
    assert [(each.topic, each.end_offset) for each in done.partitions] == [
        ("orders", end),
        ("other", 10),
    ]
    assert [each.split(":")[0] for each in done.notes] == (
        [f"{aside} is left out"] if state == "stray" else []
    )
    assert only(one, aside, to=tmp_path / "named", topics=["orders"]).end_offset == 40


def test_a_log_start_beyond_all_that_there_was_is_not_believed(tmp_path: Path) -> None:
    one = replica(tmp_path / "a", {0: log(0, 20)})
    write_log_start_offsets(one.parent, {ORDERS: 1000})
    merged = only(one, to=tmp_path / "out")
    assert [path.read_bytes() for path in (tmp_path / "out" / "orders-0").glob("*.log")] == [
        segment_path(one, 0).read_bytes()
    ]
    assert pylog.scan(tmp_path / "out").to_table().num_rows == 20
    assert any("starts at offset 1000 according to its ch" in each for each in merged.notes)
    assert gaps(merged) == []


@pytest.mark.parametrize(
    "name",
    [
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "orders-0/leader-epoch-checkpoint",
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    one = replica(tmp_path / "a", {0: log(0, 20)})
    (one.parent / name).write_bytes(b"\0\1")
    notes = only(one, to=tmp_path / "out").notes
    assert [each for each in notes if each.startswith(f"{one.parent / name}: ")]


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (10, []),
        (20, []),
        (21, [(20, 25)]),
        (40, [(20, 25)]),
        (pylog.Timestamp(1000), []),  # that of the first record of each batch
        (pylog.Timestamp(9000), [(20, 25)]),
    ],
)
def test_what_is_missing_before_an_end_is_told(
    tmp_path: Path, until: int | pylog.Timestamp, expected: list[tuple[int, int]]
) -> None:
    one = replica(tmp_path / "a", {0: log(0, 20)})
    write_high_watermarks(one.parent, {ORDERS: 25})
    assert gaps(only(one, to=tmp_path / "out", until=until)) == expected
    [planned] = (
        pylog.jobs.MergeCuts((str(one),), until)
        .find(
            [pylog.TopicPartition(*ORDERS)], lambda places, task: [task(each, 0) for each in places]
        )
        .values()
    )
    assert planned.is_whole is bool(expected)


def test_an_end_below_the_log_start_leaves_nothing(tmp_path: Path) -> None:
    one = replica(tmp_path / "a", {0: log(0, 20)})
    write_log_start_offsets(one.parent, {ORDERS: 12})
    assert gaps(only(one, to=tmp_path / "out", until=7)) == []
    assert pylog.scan(tmp_path / "out").to_table().num_rows == 0


def test_the_name_of_the_last_file_tells_how_far_the_log_went(tmp_path: Path) -> None:
    one = replica(tmp_path / "a", {0: log(0, 25), 40: []})
    assert gaps(only(one, to=tmp_path / "out")) == [(25, 40)]


def test_a_log_of_damage_alone_is_not_complete(tmp_path: Path) -> None:
    one = replica(tmp_path / "a", {0: [with_flip(log(0, 5)[0], 80)]})
    assert gaps(only(one, to=tmp_path / "out")) == [(0, None)]


def test_a_partition_of_which_no_file_is_left_is_a_gap(tmp_path: Path) -> None:
    one, other = replica(tmp_path / "1", {0: log(0, 10)}, node=1), tmp_path / "1"
    records = [topic_record("orders"), partition_record(0, 1, (1,)), partition_record(1, 1, (1,))]
    write_metadata_log(other, records)
    done = merge(other, to=tmp_path / "out")
    assert [(each.partition, gaps(each)) for each in done.partitions] == [(0, []), (1, [(0, None)])]
    assert not done.is_complete
    assert pylog.scan(tmp_path / "out", topics="orders").count() == 10
    assert one.exists()


def test_each_replica_gives_what_the_others_have_lost(tmp_path: Path) -> None:
    whole = {0: log(0, 20), 20: log(20, 40), 40: log(40, 60)}
    ones = [replica(tmp_path / name, whole) for name in "abc"]
    (ones[0] / "00000000000000000020.log").unlink()
    segment_path(ones[1], 0).write_bytes(b"")
    data = bytearray(segment_path(ones[2], 20).read_bytes())
    data[-3] ^= 4
    segment_path(ones[2], 20).write_bytes(data)
    before = tree(tmp_path)
    merged = only(*ones, to=tmp_path / "out")
    assert {name: each for name, each in tree(tmp_path).items() if name[:3] != "out"} == before
    expected = [each.data for batches in whole.values() for each in batches]
    assert list(stored_batches(tmp_path / "out" / "orders-0")) == expected
    assert ranges(merged) == [
        *((0, 20, "a", "leader"), (20, 40, "b", "follower"), (40, 60, "a", "leader"))
    ]
    assert (merged.gaps, merged.branches, merged.is_complete) == ([], [], True)
    assert list(pylog.doctor(tmp_path / "out").findings) == []
    records = pylog.scan(tmp_path / "out", topics=["orders"]).to_table()
    assert records["offset"].to_pylist() == list(range(60))


def test_of_an_unclean_election_the_new_leaders_log_is_left_and_the_lost_marker_is_named(
    tmp_path: Path,
) -> None:
    ones = diverged(tmp_path)
    write_high_watermarks(tmp_path / "1", {("orders", 0): 46})
    merged = only(*ones, to=tmp_path / "out")
    assert list(stored_batches(tmp_path / "out/orders-0")) == list(stored_batches(ones[2]))
    (branch,) = merged.branches
    assert (branch.start_offset, branch.end_offset, branch.epoch, branch.records) == (45, 76, 0, 31)
    assert [each.split("/")[-2] for each in branch.sources] == ["1", "2"]
    (cut,) = merged.transactions
    assert (cut.producer_id, cut.first_offset, cut.marker, cut.marker_offset) == (
        *(1, 40, "COMMIT", 45),
    )
    notes = "\n".join(merged.notes)
    assert "not proven that this is the last leader" in notes
    assert "1/orders-0 has a high watermark of 46, and leaves the log at offset 45" in notes
    entries = read_leader_epoch_checkpoint(tmp_path / "out/orders-0/leader-epoch-checkpoint")
    assert [tuple(each) for each in entries] == [(0, 0), (3, 45)]


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    two = replica(tmp_path / "2", {20: log(20, 40)}, [(0, 25)])
    write_log_start_offsets(tmp_path / "2", {("orders", 0): 25})
    merged = only(one, two, to=tmp_path / "out")
    assert gaps(merged) == []
    records = pylog.scan(tmp_path / "out", topics=["orders"]).to_table()
    assert records["offset"].to_pylist() == list(range(25, 40))
    stored = read_offset_checkpoint(tmp_path / "out/log-start-offset-checkpoint")
    assert list(stored.values()) == [25]


def test_a_flipped_base_offset_is_mended_from_another_replica_or_from_its_neighbours(
    tmp_path: Path,
) -> None:
    batches = log(0, 40)
    wrong = [*batches[:3], with_base_offset(batches[3], 15 + (1 << 20)), *batches[4:]]
    one = replica(tmp_path / "1", {0: wrong})
    for others in ([replica(tmp_path / "2", {0: batches[:5]})], []):
        place = tmp_path / f"out{len(others)}"
        merged = only(one, *others, to=place)
        assert gaps(merged) == []
        assert list(stored_batches(place / "orders-0")) == [each.data for each in batches]


def test_two_histories_of_one_epoch_are_refused_and_the_preferred_one_is_taken(
    tmp_path: Path,
) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    two = replica(tmp_path / "2", {0: log(0, 40, step=10)})
    with pytest.raises(DivergedReplicasError) as caught:
        merge(one, two, to=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (text,) = caught.value.divergences[:1]
    assert text.startswith("orders-0: the replicas have different batches of one leader: offsets 0")
    merged = only(one, two, to=tmp_path / "out", prefer=tmp_path / "2/orders-0")
    assert ranges(merged) == [(0, 40, "2", "preferred")]
    with pytest.raises(ValueError, match="is none of the paths"):
        merge(one, two, to=tmp_path / "other", prefer=tmp_path / "3")


def test_whole_directories_are_merged_partition_by_partition(tmp_path: Path) -> None:
    for node in (1, 2):
        for name in ("orders-0", "orders-1", "users-0"):
            replica(tmp_path / str(node), {0: log(0, 20), 20: log(20, 40)}, name=name, node=node)
    (tmp_path / "1/orders-0/00000000000000000020.log").unlink()
    shutil.rmtree(tmp_path / "2/users-0")
    done = merge(tmp_path / "1", tmp_path / "2", to=tmp_path / "out")
    assert done.is_complete
    found = {(each.topic, each.partition): len(each.sources) for each in done.partitions}
    assert found == {("orders", 0): 2, ("orders", 1): 2, ("users", 0): 1}
    assert pylog.scan(tmp_path / "out", topics=["orders"]).count() == 80
    chosen = merge(
        *(tmp_path / "1", tmp_path / "2"), to=tmp_path / "one", topics=["orders"], partitions=[1]
    )
    assert [(each.topic, each.partition) for each in chosen.partitions] == [("orders", 1)]
    with pytest.raises(UnknownTopicOrPartitionError):
        merge(tmp_path / "1", to=tmp_path / "none", topics=["other"])


def test_replicas_of_two_topics_clusters_or_running_brokers_are_refused(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    two = replica(tmp_path / "2", {0: log(0, 40)}, topic_id="BBECAwQFBgcICQoLDA0ODw")
    with pytest.raises(LogDirectoryError, match="of 2 topics of one name"):
        merge(one, two, to=tmp_path / "out")
    with pytest.raises(LogDirectoryError, match="not empty"):
        merge(one, to=tmp_path / "2")
    with pytest.raises(LogDirectoryError, match="not to be changed"):
        merge(tmp_path / "1", to=tmp_path / "1" / "out")
    with DirectoryLock(str(tmp_path / "1")), pytest.raises(LogLockedError):
        merge(one, to=tmp_path / "out")
    (tmp_path / "out.pylog-unfinished").mkdir()
    with pytest.raises(LogDirectoryError, match="interrupted"):
        merge(one, to=tmp_path / "out")


def test_batches_without_epochs_are_held_against_each_other_by_offset_and_checksum(
    tmp_path: Path,
) -> None:
    old = [message(each, magic=1) for each in plain_records(0, 20)]
    one = replica(tmp_path / "1", {0: old[:10], 10: old[10:]}, [])
    two = replica(tmp_path / "2", {0: old[:10]}, [])
    segment_path(one, 0).unlink()
    merged = only(one, two, to=tmp_path / "out")
    assert [each[:3] for each in ranges(merged)] == [(0, 10, "2"), (10, 20, "1")]
    assert any("v0 or v1" in each for each in merged.notes)


def test_what_a_cleaner_has_taken_out_is_no_gap_where_the_file_is_whole(tmp_path: Path) -> None:
    kept = [*log(0, 20), *log(35, 60)]
    cleaned = batch_v2([Stored(62, 1, b"k", b"v")], base_offset=60, last_offset=64)
    segments = {0: [*kept, cleaned], 70: log(70, 80), 100: log(100, 120)}
    one = replica(tmp_path / "1", segments)
    merged = only(one, to=tmp_path / "out")
    assert [(each[:2], each.is_cleaned_or_lost) for each in merged.gaps] == [
        ((65, 70), True),
        ((80, 100), True),
    ]
    assert list(stored_batches(tmp_path / "out/orders-0")) == list(stored_batches(one))
    # The last batch may be after a gap, as in a follower that has fetched a compacted log.
    gappy = [*log(0, 20), *log(35, 60), *log(80, 85)]
    two = replica(tmp_path / "2", {0: gappy})
    assert only(two, to=tmp_path / "two").end_offset == 85
    # No cleaner has been there: the first gap is one, and the last batch alone has a wrong offset.
    three = replica(tmp_path / "3", {0: [*log(0, 20), *log(80, 85)]})
    merged = only(three, to=tmp_path / "three")
    assert (merged.end_offset, [each.start_offset for each in merged.branches]) == (20, [80])


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_that_no_replica_has_is_a_gap(magic: int, tmp_path: Path) -> None:
    whole = [wrapper(plain_records(at, 5), magic=magic, codec="gzip") for at in range(0, 40, 5)]

    def damaged(*which: int) -> list[Built]:
        return [with_flip(each, 30) if at in which else each for at, each in enumerate(whole)]

    one = replica(tmp_path / "one", {0: damaged(0, 2, 4)}, [])
    other = replica(tmp_path / "other", {0: damaged(0, 3, 4)}, [])
    (partition,) = merge(one, other, to=tmp_path / "merged").partitions
    gaps = [(each.start_offset, each.end_offset) for each in partition.gaps]
    assert gaps == [(0, 5), (20, 25)]
    found = pylog.scan(tmp_path / "merged", columns=["offset"]).to_table().column(0).to_pylist()
    assert found == [*range(5, 20), *range(25, 40)]


def test_a_damaged_batch_in_each_replica_is_no_reason_to_stop(tmp_path: Path) -> None:
    batches = log(0, 40)
    ones = [
        replica(
            tmp_path / str(at), {0: [*batches[:at], with_flip(batches[at], 80), *batches[at + 1 :]]}
        )
        for at in (1, 4, 6)
    ]
    merged = only(*ones, to=tmp_path / "out")
    assert merged.gaps == []
    assert list(stored_batches(tmp_path / "out/orders-0")) == [each.data for each in batches]


def test_a_damaged_batch_of_the_leader_is_another_replicas_and_the_report_says_so(
    tmp_path: Path,
) -> None:
    batches = log(0, 40)
    hurt = [*batches[:3], with_flip(batches[3], 80), *batches[4:7], with_flip(batches[7], 80)]
    one, two = (replica(tmp_path / str(at), {0: hurt if at == 1 else batches}) for at in (1, 2))
    merged = only(one, two, to=tmp_path / "out")
    assert merged.leader == str(one)
    assert [each[:3] for each in merged.ranges] == [
        (0, 15, str(one)),
        (15, 20, str(two)),
        (20, 35, str(one)),
        (35, 40, str(two)),
    ]
    assert [each.damaged_ranges for each in merged.sources] == [2, 0]
    assert list(stored_batches(tmp_path / "out/orders-0")) == [each.data for each in batches]


def test_a_replica_with_a_damaged_header_is_read_whole_and_the_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = log(0, 40)
    hurt = [*batches[:3], with_flip(batches[3], 40), *batches[4:]]  # of its largest timestamp
    one, two = (replica(tmp_path / str(at), {0: hurt if at == 2 else batches}) for at in (1, 2))
    read_whole: list[str] = []
    segment_rows = ReplicaLog._segment_rows

    def counted(
        log: ReplicaLog, number: int, memory: WindowMemory, *, skips_damage: bool
    ) -> Iterator[Rows]:
        read_whole.append(log.path)
        return segment_rows(log, number, memory, skips_damage=skips_damage)

    monkeypatch.setattr(ReplicaLog, "_segment_rows", counted)
    merged = only(one, two, to=tmp_path / "out")
    assert read_whole == [str(two)]
    assert [each.damaged_ranges for each in merged.sources] == [0, 1]
    assert list(stored_batches(tmp_path / "out/orders-0")) == [each.data for each in batches]


@pytest.mark.parametrize("where", [30, 80])  # of what the checksum covers: the header, a record
def test_a_batch_that_is_damaged_in_all_replicas_alike_is_a_gap(where: int, tmp_path: Path) -> None:
    batches = log(0, 40)
    batches[4] = with_flip(batches[4], where)
    ones = [replica(tmp_path / str(at), {0: batches}) for at in (1, 2, 3)]
    merged = only(*ones, to=tmp_path / "out")
    assert [(each.start_offset, each.end_offset) for each in merged.gaps] == [(20, 25)]
    assert [cause.found.split(":")[0] for cause in merged.gaps[0].causes] == ["damaged"] * 3
    assert [each.damaged_ranges for each in merged.sources] == [1, 1, 1]
    expected = [each.data for at, each in enumerate(batches) if at != 4]
    assert list(stored_batches(tmp_path / "out/orders-0")) == expected
    assert not (tmp_path / "out.pylog-unfinished").exists()


def test_a_crash_at_any_step_leaves_the_sources_and_no_half_of_a_result(
    tmp_path: Path, how_many: HowMany
) -> None:
    for node in (1, 2, 3):
        segments = {at: log(at, at + 500) for at in range(0, 4000, 500)}
        replica(tmp_path / str(node), segments)
        (tmp_path / str(node) / "orders-0" / f"{500 * node:020d}.log").unlink()
    sources = [tmp_path / str(node) / "orders-0" for node in (1, 2, 3)]
    before = tree(tmp_path)
    out, unfinished = tmp_path / "out", tmp_path / "out.pylog-unfinished"
    outcomes = set()
    for step in itertools.count(0, how_many(3, 1)):
        has_crashed = crashed_at(step, partial(merge, *sources, to=out))
        names = {name: each for name, each in tree(tmp_path).items() if name[:3] != "out"}
        assert names == before
        outcomes.add((out.exists(), unfinished.exists()))
        if unfinished.exists():
            with pytest.raises(LogDirectoryError, match=r"interrupted|not empty"):
                merge(*sources, to=out)
            shutil.rmtree(unfinished)
        if out.exists():
            assert pylog.scan(out, topics=["orders"]).count() == 4000
            shutil.rmtree(out)
        if not has_crashed:
            break
    assert outcomes >= {(False, False), (False, True), (True, False)}
    assert merge(*sources, to=out).is_complete
