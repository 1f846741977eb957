from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.reading.log_view import first_timestamp
from pylog.recovery.cluster_info import opened
from tests.support.adopted_disks import OLD_CLUSTER, known, properties
from tests.support.batches import batch_v2, plain_records
from tests.support.damage import flip
from tests.support.log_files import (
    replace_with_same,
    segment_path,
    write_meta_properties,
    write_partition,
)
from tests.support.metadata_log import (
    METADATA,
    config_record,
    data_batch,
    feature_record,
    leader_change,
    register_broker_record,
    voters_batch,
    write_metadata_log,
    write_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.reading.log_view import LogView
    from tests.support.golden import GoldenRoot

CLUSTER = "qM6VaBEQIIV4rb6KS_2csw"
RESERVED_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def node(directory: Path, node_id: int, *, cluster_id: str = CLUSTER, extra: str = "") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n{extra}"
    )
    return directory


def voting(directory: Path, node_id: int, values: list[bytes], voters: tuple[int, ...]) -> Path:
    write_metadata_log(node(directory, node_id), values, voters=voters)
    return directory


def test_what_a_real_controller_has_said(golden_root: GoldenRoot) -> None:
    found = pylog.info(golden_root.case("4.4.0/controller-logdir"))
    assert (found.cluster_id, found.node_id) == ("bbgTT3A5rkm9iGMDXIMjTw", 3)
    assert (found.metadata_version, found.metadata_release) == (33, "4.4-IV2")
    assert (found.kraft_version, found.features["share.version"]) == (1, 2)
    (voter,) = found.voters
    assert (voter.voter_id, voter.directory_id) == (1, "aoDXEGvVRmWk6jWtZrBz4w")
    assert voter.endpoints == (("CONTROLLER", "127.0.0.1", 25041),)
    assert found.quorum == (1, ())
    assert found.starts_on == ["4.4"]
    (broker,) = found.brokers
    assert (broker.node_id, broker.kafka_version, broker.leaderships) == (1, "4.4", 23)
    assert [each.kafka_version for each in found.controllers] == ["4.4", "4.4"]
    assert ("User:*", "DENY", "inv", "PREFIXED") in {
        (each.principal, each.permission, each.resource_name, each.pattern_type)
        for each in found.acls
    }
    assert [(each.name, each.mechanism) for each in found.users] == [
        ("alice", "SCRAM-SHA-256"),
        ("bob", "SCRAM-SHA-512"),
    ]
    assert [(each.entity, each.limits) for each in found.quotas] == [
        ({"client-id": None}, {"producer_byte_rate": 2048.0}),
        ({"user": "alice"}, {"consumer_byte_rate": 1048576.0}),
    ]


def test_a_broker_says_how_it_was_stopped_and_from_when_its_records_are(
    golden_root: GoldenRoot,
) -> None:
    found = pylog.info(golden_root.case("4.3.0/internal-logdir"))
    assert found.starts_on == ["4.3", "4.4"]
    (one,) = found.nodes
    assert (one.formatted_with, one.last_run_by) == ("4.3-IV0", "4.3")
    (directory,) = one.log_directories
    assert (directory.was_stopped_cleanly, directory.partitions) == (True, 8)
    assert directory.first_timestamp is not None
    assert directory.last_timestamp is not None
    assert directory.first_timestamp < directory.last_timestamp


def test_a_log_whose_file_a_broker_replaces_meanwhile_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [batch_v2(plain_records(0, 2, timestamp=5_000))]
    partition = write_partition(node(tmp_path, 1), {0: batches}, name="orders-0")
    files = [segment_path(partition, 0)]

    def replace_and_read(view: LogView) -> int | None:
        if files:
            replace_with_same(files.pop())
        return first_timestamp(view)

    monkeypatch.setattr("pylog.recovery.cluster_info.first_timestamp", replace_and_read)
    found = pylog.info(tmp_path)
    assert (files, found.errors) == ([], [])
    ((directory,),) = (each.log_directories for each in found.nodes)
    assert (directory.first_timestamp, directory.last_timestamp) == (5_000, 5_001)


def test_two_of_three_voters_have_to_run(tmp_path: Path) -> None:
    values = [feature_record(21)]
    disks = [voting(tmp_path / str(each), each, values, (1, 2, 3)) for each in (1, 3)]
    one = pylog.info(disks[0])
    assert (one.quorum, one.quorum.is_met) == ((2, (1,)), False)
    assert one.quorum_text == "2 of 3 voters (1, 2, 3) have to run; given: 1"
    assert [each.directory_id for each in one.voters] == [None, None, None]
    both = pylog.info(*disks)
    assert (both.quorum, both.quorum.is_met) == ((2, (1, 3)), True)
    assert both.committed_end_offset == 2


def test_a_voter_with_another_directory_id_is_none(tmp_path: Path) -> None:
    directory = node(tmp_path, 1, extra="directory.id=Igo74ZAZCxWJ1lxdTzs-vQ\n")
    batches = [leader_change(0, (1, 2, 3)), voters_batch(1, (1, 2, 3))]
    write_partition(directory, {0: [*batches, data_batch(2, [feature_record(21)])]}, name=METADATA)
    found = pylog.info(directory)
    assert {each.directory_id for each in found.voters} == {RESERVED_ID}
    assert found.quorum == (2, ())


def test_values_that_may_be_passwords_are_not_shown(tmp_path: Path) -> None:
    secrets = {
        "ssl.keystore.password": "secret-1",
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": "secret-2",
        "ssl.keystore.key": "secret-3",
        "my.plugin.token": "secret-4",
        "log.retention.ms": "86400000",
    }
    values = [feature_record(21)]
    values += [config_record(4, "1", name, value) for name, value in secrets.items()]
    found = pylog.info(voting(tmp_path / "1", 1, values, (1,)))
    (settings,) = found.broker_configs
    assert settings.configs == {"log.retention.ms": "86400000"}
    assert set(settings.hidden) == set(secrets) - {"log.retention.ms"}
    assert "secret-" not in repr(found)


def test_a_fenced_broker_without_replicas_is_stale(tmp_path: Path) -> None:
    values = [feature_record(21), register_broker_record(7, (bytes(15) + b"\x77",))]
    found = pylog.info(voting(tmp_path / "1", 1, values, (1,)))
    assert [(each.node_id, each.is_stale, each.is_given) for each in found.brokers] == [
        (7, True, False)
    ]


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    one = node(tmp_path / "1", 1)
    two = node(tmp_path / "2", 2, cluster_id="TGS49_DL2kqPGPzG1xseBg")
    with pytest.raises(LogDirectoryError, match="log directories of 2 clusters"):
        pylog.info(one, two)
    with pytest.raises(ValueError, match="at least one"):
        pylog.info()
    with pytest.raises(LogDirectoryError):
        pylog.info(tmp_path / "none")


def test_a_log_directory_may_have_a_name_as_a_partition_has_it(tmp_path: Path) -> None:
    write_partition(tmp_path / "disk-1", {0: [batch_v2(plain_records(0, 3))]})
    [(place, views)] = opened([tmp_path / "disk-1"])
    assert place == str(tmp_path / "disk-1")
    assert [str(each.topic_partition) for each in views] == ["orders-0"]
    assert [each for each, _ in opened([tmp_path / "disk-1" / "orders-0"])] == [place]


def test_a_disk_that_has_copies_on_their_way_alone_keeps_them(tmp_path: Path) -> None:
    name = f"orders-1.{'a' * 32}-future"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name=name)
    write_meta_properties(tmp_path)
    [(_, found)] = opened([tmp_path])
    assert [each.path for each in found.others] == [str(tmp_path / name)]


def lost_and_found(disk: Path) -> None:
    (disk / "lost+found").mkdir()


def damaged_metadata(disk: Path) -> None:
    flip(segment_path(disk / METADATA, 0), -1)


def unknown_version(disk: Path) -> None:
    write_metadata_log(disk, [feature_record(25), b"\x01\x02\x09abc"])


def unknown_type(disk: Path) -> None:
    write_metadata_log(disk, [feature_record(25), b"\x01\x63\x00abc"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lost_and_found, "lost+found: directory is not named <topic>-<partition>"),
        (damaged_metadata, "no record of the metadata that can be read gives the level"),
        (unknown_version, "is not understood, since a later version of Kafka wrote it"),
        (unknown_type, "records that no version up to 4.4 knows (types 99)"),
    ],
)
def test_no_version_starts_where_none_understands_what_is_there(
    change: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    disk = known(tmp_path / "1")
    assert pylog.info(disk).starts_on == ["4.0", "4.1", "4.2", "4.3", "4.4"]
    change(disk)
    found = pylog.info(disk)
    assert found.starts_on == []
    assert all(why in each.reason for each in found.does_not_start_on)


def test_a_node_with_two_logs_of_the_metadata_does_not_start(tmp_path: Path) -> None:
    disk = known(tmp_path / "1")
    second = properties(tmp_path / "2", 1, OLD_CLUSTER, "4L6g3nShT-eMCtK--X86sw")
    write_metadata_log(second, [feature_record(25)])
    found = pylog.info(disk, second)
    assert found.starts_on == []
    assert "have a log of the cluster's metadata each" in found.does_not_start_on[0].reason


def test_a_snapshot_without_its_end_says_which_versions_start(tmp_path: Path) -> None:
    disk = known(tmp_path / "1")
    write_snapshot(disk / METADATA, 70, [feature_record(25)], has_footer=False)
    found = pylog.info(disk)
    assert (found.starts_on, len(found.errors)) == (["4.0", "4.1", "4.2", "4.3", "4.4"], 1)


def test_metadata_that_were_there_are_missed(tmp_path: Path) -> None:
    disk = known(tmp_path / "1")
    assert pylog.info(disk).errors == []
    (disk / METADATA / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 90\n")
    [error] = pylog.info(disk).errors
    assert "its leader epochs reach to 90" in str(error)
    (disk / METADATA / "leader-epoch-checkpoint").unlink()
    segment_path(disk / METADATA, 0).write_bytes(b"")
    [error] = pylog.info(disk).errors
    assert "1 partition would be set aside as -stray" in str(error)
