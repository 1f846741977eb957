"""Which replicas of old disks are the best ones, and which topics they are of."""

from __future__ import annotations

import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.recovery.adopted_topics import OldDisks, likely_count
from tests.support.adopted_disks import (
    DIRECTORY_ID,
    LEVEL,
    OLD_CLUSTER,
    TOPIC_ID,
    formatted,
    known,
    old,
    properties,
)
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.damage import flip
from tests.support.log_files import (
    segment_path,
    write_log_start_offsets,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import config_record, topic_record, write_metadata_log
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.support.golden import GoldenRoot


def test_the_replica_of_the_last_leader_is_taken_though_another_is_longer(tmp_path: Path) -> None:
    longer = old(tmp_path / "1", epochs=(3, 3, 3))
    leader = properties(old(tmp_path / "2", epochs=(3, 4)), 2, OLD_CLUSTER, DIRECTORY_ID)
    target = formatted(tmp_path / "new")
    summary = pylog.adopt(longer, leader, into=target)
    assert summary.partitions[0].source == str(leader / "t-0")
    assert any("goes further, to offset 30" in each for each in summary.notes)
    assert fields_of(target, "PartitionRecord")[0]["leaderEpoch"] == 5


def replicas_of(*disks: Path) -> list[tuple[str, int, int, int]]:
    """Return the replicas of t-0, the best first: node, last and highest epoch, end."""
    [topic] = OldDisks(disks, None).topics
    return [
        (Path(each.view.directory.log_directory).name, *each.position, each.highest_epoch)
        for each in topic.replicas[0]
    ]


def disk(directory: Path, node: int, epochs: Sequence[int], topic_id: str = TOPIC_ID) -> Path:
    old(directory, epochs=epochs)
    write_topic_id(directory / "t-0", topic_id)
    return properties(directory, node, OLD_CLUSTER, DIRECTORY_ID)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((3, 3), (3,), [("1", 3, 20, 3), ("2", 3, 10, 3)]),
        ((3, 3), (4,), [("2", 4, 10, 4), ("1", 3, 20, 3)]),
        ((3,), (3,), [("1", 3, 10, 3), ("2", 3, 10, 3)]),  # of equals the first that was given
        ((900, 3), (4,), [("2", 4, 10, 4), ("1", 3, 20, 900)]),  # one flipped bit wins nothing
        ((), (0,), [("2", 0, 10, 0), ("1", -1, 0, -1)]),
    ],
)
def test_the_replica_of_the_highest_last_epoch_is_first_and_then_the_longest(
    one: tuple[int, ...],
    other: tuple[int, ...],
    expected: list[tuple[str, int, int, int]],
    tmp_path: Path,
) -> None:
    assert replicas_of(disk(tmp_path / "1", 1, one), disk(tmp_path / "2", 2, other)) == expected


@pytest.mark.parametrize(
    ("checkpoint", "epoch"),
    [("5 10", 5), ("5 20", 5), ("5 21", 3), ("1 0", 3), ("not a line", 3)],
)
def test_an_epoch_of_the_checkpoint_counts_up_to_the_end(
    checkpoint: str, epoch: int, tmp_path: Path
) -> None:
    """A leader writes its epoch before its first record."""
    place = disk(tmp_path / "1", 1, (3, 3))
    (place / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n{checkpoint}\n")
    assert replicas_of(place) == [("1", epoch, 20, max(epoch, 3))]


def test_what_is_damaged_counts_for_nothing(tmp_path: Path) -> None:
    place = disk(tmp_path / "1", 1, (3, 9))
    path = segment_path(place / "t-0", 0)
    flip(path, -1)
    assert replicas_of(place) == [("1", 3, 10, 3)]
    assert OldDisks([place], None).highest_producer_id == 4_000


def test_a_topic_has_one_id_and_all_numbers_up_to_the_highest(tmp_path: Path) -> None:
    one = old(tmp_path / "1", partitions=(0, 3))
    [topic] = OldDisks([one], ["t"]).topics
    assert {number: len(each) for number, each in topic.replicas.items()} == {
        0: 1,
        1: 0,
        2: 0,
        3: 1,
    }
    with pytest.raises(UnknownTopicOrPartitionError):
        OldDisks([one], ["u"])
    other = disk(tmp_path / "2", 2, (3,), "BBECAwQFBgcICQoLDA0ODw")
    with pytest.raises(LogDirectoryError, match="deleted and made again"):
        OldDisks([one, other], None)
    # Of the ids, the one in the old metadata is the topic's.
    write_metadata_log(one, [*LEVEL, topic_record("t")])
    [topic] = OldDisks([one, other], None).topics
    assert topic.topic_id == uuid.UUID(bytes=bytes(range(16)))


def test_disks_of_two_clusters_are_refused(tmp_path: Path) -> None:
    one, other = disk(tmp_path / "1", 1, (3,)), disk(tmp_path / "2", 2, (3,))
    properties(other, 2, "qM6VaBEQIIV4rb6KS_2csw", DIRECTORY_ID)
    with pytest.raises(LogDirectoryError, match="2 clusters"):
        OldDisks([one, other], None)


def test_disks_without_producers_have_no_id_of_one(tmp_path: Path) -> None:
    assert OldDisks([disk(tmp_path / "1", 1, ())], None).highest_producer_id == -1


def test_records_about_access_are_those_that_the_others_lack(tmp_path: Path) -> None:
    one = old(tmp_path / "1")
    kept, known = (config_record(32, name, "a", "1") for name in ("g", "h"))
    assert OldDisks([one], None).access_records([]) == []
    write_metadata_log(one, [*LEVEL, topic_record("t"), kept, known])
    assert OldDisks([one], None).access_records([known]) == [kept]


OTHER_ID = "BBECAwQFBgcICQoLDA0ODw"


def rename(directory: Path, state: str) -> None:
    (directory / "t-0").rename(directory / f"t-0.{'a' * 32}{state}")


def of_another_topic(directory: Path) -> None:
    write_topic_id(directory / "t-0", OTHER_ID)


def without_log(directory: Path) -> None:
    for each in (directory / "t-0").glob("0*"):
        each.unlink()


def beyond_the_last(directory: Path) -> None:
    (directory / "t-0").rename(directory / "t-5")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (partial(rename, state="-stray"), "was set aside by its broker"),
        (partial(rename, state="-delete"), "was being deleted"),
        (
            of_another_topic,
            f"is of a topic with the id {OTHER_ID}, and the metadata has {TOPIC_ID}",
        ),
        (without_log, "has no .log file"),
        (beyond_the_last, "is of a partition that the metadata does not have: 1 there"),
    ],
)
def test_what_a_broker_would_set_aside_is_left_out_and_named(
    change: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    source = known(tmp_path / "old")
    change(source)
    disks = OldDisks([source], None)
    assert {number: len(each) for number, each in disks.topics[0].replicas.items()} == {0: 0}
    assert any(why in each and each.endswith("left out") for each in disks.notes())
    done = pylog.adopt(source, into=formatted(tmp_path / "new"))
    assert done.losses == ["t-0: no disk has it, and it begins empty"]
    assert any(why in each for each in done.notes)


def test_a_future_directory_counts_where_it_is_all_that_its_node_has(tmp_path: Path) -> None:
    source = known(tmp_path / "old")
    rename(source, "-future")
    done = pylog.adopt(source, into=formatted(tmp_path / "new"))
    assert (done.losses, done.partitions[0].end_offset) == ([], 20)
    assert pylog.scan(tmp_path / "new" / "t-0").count() == 20
    shorter = old(tmp_path / "more")
    shutil.copytree(shorter / "t-0", source / "t-0")
    disks = OldDisks([source], None)
    assert [each.end_offset for each in disks.topics[0].replicas[0]] == [10]
    assert any("was being made from the log beside it" in each for each in disks.notes())


def test_a_log_on_a_node_that_is_no_replica_comes_after_all_others(tmp_path: Path) -> None:
    stale = known(tmp_path / "1", 1, (2,), epochs=(5, 5, 5))
    own = known(tmp_path / "2", 2, (2,))
    [topic] = OldDisks([stale, own], None).topics
    assert [each.is_assigned for each in topic.replicas[0]] == [True, False]
    assert [each.is_in_sync for each in topic.replicas[0]] == [True, False]
    # Where no other one is left it is taken, and that is a loss.
    done = pylog.adopt(stale, into=formatted(tmp_path / "new"))
    assert done.losses == [
        "t-0: no replica that was in sync was given, and records that only the others had are lost"
    ]


def test_an_interrupted_adoption_is_no_source(tmp_path: Path) -> None:
    source = known(tmp_path / "old")
    (source / ".pylog-adoption").mkdir()
    with pytest.raises(LogDirectoryError, match="earlier call was interrupted"):
        pylog.adopt(source, into=formatted(tmp_path / "new"))


def test_checkpoints_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    source = known(tmp_path / "old")
    (source / "replication-offset-checkpoint").write_text("none")
    [note] = OldDisks([source], None).notes()
    assert "replication-offset-checkpoint cannot be read" in note


def cut(directory: Path) -> None:
    path = segment_path(directory / "t-0", 0)
    path.write_bytes(path.read_bytes()[:-5])


def first_batch_alone(directory: Path) -> None:
    path = segment_path(directory / "t-0", 0)
    data = path.read_bytes()
    path.write_bytes(data[: 12 + int.from_bytes(data[8:12], "big")])


def damaged(directory: Path) -> None:
    flip(segment_path(directory / "t-0", 0), 100)


def epochs_go_on(directory: Path) -> None:
    for each in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (directory / each).unlink()
    first_batch_alone(directory)
    (directory / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 15\n")


def begins_late(directory: Path) -> None:
    shutil.rmtree(directory / "t-0")
    write_partition(directory, {10: [batch_v2(plain_records(10, 10))]}, name="t-0")
    write_log_start_offsets(directory, {("t", 0): 4})


def has_a_hole(directory: Path) -> None:
    shutil.rmtree(directory / "t-0")
    batches = {0: [batch_v2(plain_records(0, 5))], 10: [batch_v2(plain_records(10, 10))]}
    write_partition(directory, batches, name="t-0")


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (cut, "offsets 10 to 19"),
        (first_batch_alone, "offsets 10 to 19"),
        (damaged, "offsets 0 to 9"),
        (epochs_go_on, "offsets 10 to 14"),
        (begins_late, "offsets 4 to 9"),
        (has_a_hole, "offsets 5 to 9"),
    ],
)
def test_a_dry_run_tells_of_the_losses_that_come(
    change: Callable[[Path], None], lost: str, tmp_path: Path
) -> None:
    source, target = known(tmp_path / "old"), formatted(tmp_path / "new")
    change(source)
    expected = [f"t-0: {lost} are lost"]
    assert pylog.adopt(source, into=target, dry_run=True).losses == expected
    into = tmp_path / "moved"
    assert pylog.jobs.adopt_cluster(source, into=into, dry_run=True).losses == expected
    assert pylog.jobs.adopt_cluster(source, into=into).losses == expected
    assert pylog.adopt(source, into=target).losses == expected


def test_logs_without_a_doubt_are_not_read_again(tmp_path: Path) -> None:
    [topic] = OldDisks([known(tmp_path / "old")], None).topics
    assert not topic.replicas[0][0].is_doubtful


def test_old_metadata_that_cannot_be_read_gives_way_to_another_copy(tmp_path: Path) -> None:
    more = [config_record(2, "t", "retention.ms", "5")]
    one = known(tmp_path / "1", 1, (1, 2), voters=(1, 2), more=more)
    two = known(tmp_path / "2", 2, (1, 2), voters=(1, 2), more=more * 2)
    flip(segment_path(two / "__cluster_metadata-0", 0), -1)
    disks = OldDisks([one, two], None)
    assert disks.image is not None
    assert disks.topics[0].image is not None
    assert len(disks.errors) == 1
    flip(segment_path(one / "__cluster_metadata-0", 0), -1)
    done = pylog.adopt(one, two, into=formatted(tmp_path / "new"))
    assert sum("is not used" in each for each in done.notes) == 2


def test_what_is_bound_to_remote_storage_is_named(tmp_path: Path) -> None:
    more = [config_record(2, "t", "remote.storage.enable", "true"), b"\x01\x63\x00abc"]
    notes = OldDisks([known(tmp_path / "old", more=more)], None).notes()
    assert any("remote.log.storage.system.enable=true" in each for each in notes)
    assert any("are not understood, and not used (types 99)" in each for each in notes)


def test_a_partition_that_was_given_by_its_path_comes_alone(tmp_path: Path) -> None:
    source = old(tmp_path / "old", partitions=(0, 1))
    shutil.copytree(source / "t-0", source / "u-0")
    done = pylog.adopt(source / "t-1", into=formatted(tmp_path / "new"))
    assert [(each.topic, each.partition, each.source) for each in done.partitions] == [
        ("t", 0, None),
        ("t", 1, str(source / "t-1")),
    ]


def placed(names: Sequence[str], count: int) -> dict[int, set[str]]:
    """Return where ids are: by Java's hash of a string, as its language specification has it."""
    found: dict[int, set[str]] = {}
    for name in names:
        value = sum(ord(c) * 31 ** (len(name) - 1 - at) for at, c in enumerate(name)) % 2**32
        value -= 2**32 if value >= 2**31 else 0
        found.setdefault(abs(value) % count, set()).add(name)
    return found


GROUPS = [f"group-{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("known", "count", "expected"),
    [(48, 50, 50), (50, 50, 50), (45, 47, 47), (7, 12, 12), (60, 60, 60)],
)
def test_ids_say_how_many_partitions_a_topic_of_coordinators_has(
    known: int, count: int, expected: int
) -> None:
    here = {at: names for at, names in placed(GROUPS, count).items() if at < known}
    assert likely_count(known, here) == expected
    assert likely_count(known, {}) == known
    assert likely_count(known, {0: set(GROUPS)}) == known  # no number puts them all there


def test_partitions_that_ids_tell_of_begin_empty(tmp_path: Path) -> None:
    """Else a coordinator would look for groups in other partitions than they are in."""
    source, target = old(tmp_path / "old"), formatted(tmp_path / "new")
    for number, names in placed(GROUPS, 5).items():
        if number < 4:
            keys = [
                b"\0\1" + len(each).to_bytes(2, "big") + each.encode() for each in sorted(names)
            ]
            rows = [Stored(at, 1, each + b"\0\1t\0\0\0\0", None) for at, each in enumerate(keys)]
            write_partition(source, {0: [batch_v2(rows)]}, name=f"__consumer_offsets-{number}")
    done = pylog.adopt(source, into=target)
    assert done.losses == ["__consumer_offsets-4: no disk has it, and it begins empty"]


def test_positions_of_groups_after_the_end_are_told(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    source = tmp_path / "old"
    shutil.copytree(golden_root.case("4.3.0/internal-logdir"), source)
    whole = pylog.adopt(source, into=formatted(tmp_path / "1"), dry_run=True)
    assert not any("auto.offset.reset" in each for each in whole.notes)
    for each in (source / "orders-1").glob("0*"):
        each.unlink()
    (source / "orders-1" / f"{0:020d}.log").write_bytes(b"")
    for adopted in (
        pylog.adopt(source, into=formatted(tmp_path / "2"), dry_run=True),
        pylog.jobs.adopt_cluster(source, into=tmp_path / "3", endpoints={1: "h:1"}, dry_run=True),
    ):
        [note] = [each for each in adopted.notes if "auto.offset.reset" in each]
        assert "of orders-1, which ends at 0" in note


def test_of_followers_nothing_is_read_where_it_does_not_decide(tmp_path: Path) -> None:
    leader = known(tmp_path / "1", 1, (1, 2))
    follower = known(tmp_path / "2", 2, (1, 2), epochs=(0, 0, 0))

    def ends(*disks: Path) -> list[tuple[int, int]]:
        [topic] = OldDisks(disks, None, reads_followers=False).topics
        return [(each.node, each.end_offset) for each in topic.replicas[0]]

    assert ends(leader, follower) == [(0, 20), (1, 0)]
    assert ends(follower) == [(0, 30)]
    assert [
        each.end_offset for each in OldDisks([leader, follower], None).topics[0].replicas[0]
    ] == [
        30,
        20,
    ]
