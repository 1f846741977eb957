"""`merge` as at an instant: where partitions end, and what becomes of transactions and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.jobs import merge
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    marker,
    plain_records,
    wrapper,
)
from tests.support.damage import with_base_offset
from tests.support.log_files import write_partition
from tests.support.replica_histories import stored_batches
from tests.unit.admin.coordinated import coordinated
from tests.unit.recovery.test_merge import log, replica

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.model import IsolationName
    from pylog.results import MergedPartition, MergeSummary


def part(
    offset: int,
    count: int,
    timestamp: int,
    *,
    producer: int = -1,
    epoch: int = 0,
    codec: str = "none",
) -> Built:
    if producer < 0:
        return batch_v2(plain_records(offset, count, timestamp=timestamp), codec=codec)
    return batch_v2(
        plain_records(offset, count, timestamp=timestamp),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
        codec=codec,
    )


def end(offset: int, kind: int, timestamp: int, *, producer: int, epoch: int = 0) -> Built:
    return marker(offset, kind, producer_id=producer, producer_epoch=epoch, timestamp=timestamp)


def merged_until(
    directory: Path, until: int, **options: object
) -> tuple[MergeSummary, dict[str, MergedPartition]]:
    done = merge(
        directory / "1",
        to=directory / "out",
        until=pylog.Timestamp(until),
        **options,  # type: ignore[arg-type]
    )
    return done, {f"{each.topic}-{each.partition}": each for each in done.partitions}


def offsets(
    directory: Path, partition: int = 0, *, isolation: IsolationName = "read_committed"
) -> list[int]:
    found = pylog.scan(
        directory / "out",
        assign={"orders": [partition]},
        isolation=isolation,
        columns=["offset"],
    )
    return list(found.to_table()["offset"].to_pylist())


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_partition_ends_before_the_first_record_of_the_instant_or_later(
    tmp_path: Path, codec: str
) -> None:
    batches = [part(at, 10, 1000 + at, codec=codec) for at in range(0, 100, 10)]
    replica(tmp_path / "1", {0: batches[:4], 40: batches[4:]})
    _, found = merged_until(tmp_path, 1056)
    assert offsets(tmp_path) == list(range(56))
    assert found["orders-0"].end_offset == 56
    assert found["orders-0"].cut == (56, 56, 44, 0)
    written = list(stored_batches(tmp_path / "out/orders-0"))
    assert written[:5] == [each.data for each in batches[:5]]
    assert len(written) == 6
    assert list(pylog.doctor(tmp_path / "out").findings) == []


def test_records_behind_the_end_with_earlier_timestamps_are_counted(tmp_path: Path) -> None:
    late = [part(0, 5, 1000), part(5, 5, 9000), part(10, 5, 1100), part(15, 5, 9500)]
    replica(tmp_path / "1", {0: late})
    _, found = merged_until(tmp_path, 5000)
    assert offsets(tmp_path) == list(range(5))
    assert found["orders-0"].cut == (5, 5, 15, 5)
    assert "5 records behind the end have timestamps before the instant" in "".join(
        found["orders-0"].notes
    )


def test_an_offset_ends_all_but_internal_topics(tmp_path: Path) -> None:
    replica(tmp_path / "1", {0: log(0, 40)})
    replica(tmp_path / "1", {0: log(0, 40)}, name="__consumer_offsets-0")
    done = merge(tmp_path / "1", to=tmp_path / "out", until=13)
    ends = {each.topic: each.end_offset for each in done.partitions}
    assert ends == {"orders": 13, "__consumer_offsets": 40}
    with pytest.raises(ValueError, match="the end is 'latest'"):
        merge(tmp_path / "1", to=tmp_path / "x", until="latest")  # type: ignore[arg-type]


def test_nothing_is_left_of_a_partition_that_begins_later_but_where_it_begins(
    tmp_path: Path,
) -> None:
    replica(tmp_path / "1", {20: [part(20, 5, 9000)]}, [(0, 20)])
    _, found = merged_until(tmp_path, 5000)
    assert (found["orders-0"].start_offset, found["orders-0"].end_offset) == (20, 20)
    assert found["orders-0"].gaps == []
    with pylog.logs.own_log_directory(tmp_path / "out") as manager:
        assert manager.get_log(pylog.TopicPartition("orders", 0)).log_end_offset == 20


def test_a_batch_with_a_wrong_base_offset_is_cut_at_the_right_one(tmp_path: Path) -> None:
    batches = [part(at, 10, 1000 + at) for at in range(0, 60, 10)]
    wrong = [*batches[:3], with_base_offset(batches[3], 30 + (1 << 20)), *batches[4:]]
    replica(tmp_path / "1", {0: wrong})
    merged_until(tmp_path, 1034)
    assert offsets(tmp_path) == list(range(34))


def test_what_is_open_at_the_end_is_aborted_there(tmp_path: Path) -> None:
    batches = [
        *(part(0, 5, 1000), part(5, 5, 1100, producer=7), part(10, 5, 1200)),
        end(15, COMMIT, 9000, producer=7),
    ]
    replica(tmp_path / "1", {0: batches})
    done, found = merged_until(tmp_path, 5000)
    (ended,) = found["orders-0"].transactions
    assert (ended.producer_id, ended.first_offset, ended.appended, ended.appended_at) == (
        *(7, 5, "ABORT", 15),
    )
    assert found["orders-0"].end_offset == 16
    assert offsets(tmp_path) == [*range(5), *range(10, 15)]
    assert done.notes == []
    (planned,) = (
        merge(tmp_path / "1", to=tmp_path / "new", until=pylog.Timestamp(5000), dry_run=True)
        .partitions[0]
        .transactions
    )
    assert (planned.appended, planned.appended_at) == ("ABORT", None)


@pytest.mark.parametrize("marker_epoch", [0, 1])
def test_a_transaction_that_another_partition_has_committed_is_committed_everywhere(
    tmp_path: Path, marker_epoch: int
) -> None:
    """The marker of the one partition is before the instant, that of the other one after it."""
    first = [part(0, 5, 1000, producer=7), end(5, COMMIT, 4990, producer=7, epoch=marker_epoch)]
    other = [
        *(part(0, 5, 1001, producer=7), part(5, 5, 2000, producer=8)),
        end(10, COMMIT, 5010, producer=7, epoch=marker_epoch),
        end(11, COMMIT, 5020, producer=8, epoch=marker_epoch),
    ]
    replica(tmp_path / "1", {0: first})
    replica(tmp_path / "1", {0: other}, name="orders-1")
    _, found = merged_until(tmp_path, 5000)
    ended = found["orders-1"].transactions
    assert [(each.producer_id, each.appended, each.appended_at) for each in ended] == [
        *((7, "COMMIT", 10), (8, "ABORT", 11)),
    ]
    assert offsets(tmp_path, 1) == list(range(5))
    assert offsets(tmp_path) == list(range(5))


@pytest.mark.parametrize(
    "own",
    [
        [end(5, ABORT, 5010, producer=7)],
        [end(5, COMMIT, 5010, producer=7, epoch=4)],  # not the epoch of the other's marker
        [],
    ],
)
def test_a_marker_of_an_earlier_transaction_commits_nothing(
    tmp_path: Path, own: list[Built]
) -> None:
    before = [part(0, 5, 100, producer=7), end(5, COMMIT, 900, producer=7)]
    if own:
        before[1] = end(5, COMMIT, 4000, producer=7)
    replica(tmp_path / "1", {0: before})
    replica(tmp_path / "1", {0: [part(0, 5, 1000, producer=7), *own]}, name="orders-1")
    _, found = merged_until(tmp_path, 5000)
    assert [each.appended for each in found["orders-1"].transactions] == ["ABORT"]


def test_records_of_a_committed_transaction_behind_the_end_are_taken_up_to_its_marker(
    tmp_path: Path,
) -> None:
    """A producer's clock is ahead; what comes in with it may commit others, and so on."""
    first = [part(0, 5, 1000, producer=7), end(5, COMMIT, 4000, producer=7)]
    second = [
        *(part(0, 5, 1001, producer=7), part(5, 5, 6000, producer=7)),
        *(part(10, 5, 6100, producer=8), end(15, COMMIT, 6300, producer=8)),
        *(end(16, COMMIT, 6400, producer=7), part(17, 5, 7000)),
    ]
    third = [part(0, 5, 4500, producer=8), end(5, COMMIT, 6300, producer=8), part(6, 5, 7000)]
    replica(tmp_path / "1", {0: first})
    replica(tmp_path / "1", {0: second}, name="orders-1")
    replica(tmp_path / "1", {0: third}, name="orders-2")
    _, found = merged_until(tmp_path, 5000)
    assert found["orders-1"].cut == (5, 17, 5, 0)
    assert "it ends at offset 17, and not at 5" in "".join(found["orders-1"].notes)
    assert [each.appended for each in found["orders-2"].transactions] == ["COMMIT"]
    assert offsets(tmp_path, 1) == list(range(15))
    assert offsets(tmp_path, 2) == list(range(5))


ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 1, 2, 4


@pytest.mark.parametrize("is_chosen", [True, False])
@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([(PREPARE_COMMIT, 4990), (COMPLETE_COMMIT, 5010)], "COMMIT"),
        ([(ONGOING, 4000), (PREPARE_COMMIT, 5010)], "ABORT"),
        ([(COMPLETE_COMMIT, 5020)], "ABORT"),
    ],
)
def test_the_coordinator_says_what_was_decided_by_the_instant(
    tmp_path: Path, states: list[tuple[int, int]], expected: str, *, is_chosen: bool
) -> None:
    records = [
        coordinated(at, "app", 7, status, 1000, ("orders", 0))._replace(timestamp=written)
        for at, (status, written) in enumerate(states)
    ]
    replica(
        tmp_path / "1", {0: [batch_v2([each]) for each in records]}, name="__transaction_state-3"
    )
    replica(tmp_path / "1", {0: [part(0, 5, 1000, producer=7), end(5, COMMIT, 5010, producer=7)]})
    done, found = merged_until(tmp_path, 5000, topics=None if is_chosen else ["orders"])
    assert [each.appended for each in found["orders-0"].transactions] == [expected]
    assert found.keys() == {"orders-0"}
    assert len(done.notes) == is_chosen
    assert not (tmp_path / "out/__transaction_state-3").exists()


def test_compressed_wrappers_of_old_messages_are_cut_too(tmp_path: Path) -> None:

    old = [
        wrapper(plain_records(at, 5, timestamp=1000 + at), magic=1, codec="gzip") for at in (0, 5)
    ]
    directory = write_partition(tmp_path / "1", {0: old})
    assert directory.is_dir()
    merged_until(tmp_path, 1007)
    assert offsets(tmp_path) == list(range(7))


def test_a_time_is_no_message_of_its_own(tmp_path: Path) -> None:
    """A record without a timestamp is before any instant."""
    records = [Stored(at, -1, b"k", b"v") for at in range(3)]
    replica(tmp_path / "1", {0: [batch_v2(records, base_timestamp=-1)]})
    merged_until(tmp_path, 0)
    assert offsets(tmp_path) == [0, 1, 2]


def test_a_marker_that_is_lost_here_is_told_by_that_of_another_partition(tmp_path: Path) -> None:
    """By KIP-890 the marker has the next epoch; what the producer had ended before is no matter."""
    first = [part(0, 5, 1000, producer=7), end(5, COMMIT, 4990, producer=7, epoch=1)]
    before = [part(0, 5, 100, producer=7), end(5, ABORT, 200, producer=7)]
    replica(tmp_path / "1", {0: first})
    replica(tmp_path / "1", {0: [*before, part(6, 5, 1001, producer=7)]}, name="orders-1")
    planned = merge(
        tmp_path / "1", to=tmp_path / "x", until=pylog.Timestamp(5000), dry_run=True
    ).partitions
    assert [[each.appended for each in one.transactions] for one in planned] == [[], ["COMMIT"]]
    merged_until(tmp_path, 5000)
    assert offsets(tmp_path, 1) == list(range(6, 11))
