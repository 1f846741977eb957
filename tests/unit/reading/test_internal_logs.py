from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError, CorruptRecordError, InvalidRecordError
from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from tests.support.damage import flip
from tests.support.log_files import write_log_start_offsets, write_partition
from tests.support.metadata_log import (
    BEGIN,
    BROKER,
    END,
    METADATA,
    config_record,
    data_batch,
    leader_change,
    topic_record,
    voters_batch,
    write_metadata_log,
    write_snapshot,
)
from tests.unit.reading.metadata_logs import ORDERS, metadata_of, retention

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
QUORUM_STATE = {
    "clusterId": "",
    "leaderId": 1,
    "leaderEpoch": 3,
    "votedId": -1,
    "appliedOffset": 0,
    "data_version": 0,
}


def test_a_real_broker_that_votes_alone_has_decided_all_of_its_log(golden_root: GoldenRoot) -> None:
    metadata = metadata_of(golden_root.case("4.3.0/internal-logdir"))
    assert (metadata.committed_end_offset, metadata.end_offset) == (236, 236)
    assert metadata.undecided == frozenset()
    # As Kafka's dump of the log has them (dump-decoded in the case).
    assert metadata.image.configs_of(BROKERS) == {"min.insync.replicas": "1"}
    assert metadata.image.configs_of(ORDERS)["max.message.bytes"] == "1000011"
    assert metadata.image.configs_of(ORDERS)["retention.ms"] == "-1"


def test_every_snapshot_of_a_real_broker_leads_to_the_same(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    case = golden_root.case("4.3.0/internal-logdir")
    whole = metadata_of(case).image
    shutil.copytree(case / METADATA, tmp_path / METADATA, copy_function=shutil.copyfile)
    (tmp_path / METADATA).chmod(0o755)
    for snapshot in sorted((tmp_path / METADATA).glob("*.checkpoint"), reverse=True):
        image = metadata_of(tmp_path).image
        assert image.configured == whole.configured
        assert image.configs_of(ORDERS) == whole.configs_of(ORDERS)
        assert [each.topic_id for each in image.topics] == [each.topic_id for each in whole.topics]
        snapshot.unlink()


def test_of_several_voters_only_a_snapshot_is_certain(tmp_path: Path) -> None:
    directory = write_metadata_log(
        tmp_path,
        [
            topic_record("orders"),
            retention("1"),
            config_record(BROKER, "", "log.retention.ms", "5"),
        ],
        voters=(1, 2, 3),
    )
    metadata = metadata_of(tmp_path)
    assert (metadata.committed_end_offset, metadata.end_offset) == (0, 4)
    assert metadata.undecided == {ORDERS, BROKERS}
    write_snapshot(directory, 3, [topic_record("orders"), retention("1")])
    metadata = metadata_of(tmp_path)
    assert (metadata.committed_end_offset, metadata.end_offset) == (3, 4)
    assert metadata.undecided == {BROKERS}


def test_a_transaction_that_ends_after_the_snapshot_is_not_certain(tmp_path: Path) -> None:
    values = [BEGIN, topic_record("orders"), retention("1")]
    directory = write_metadata_log(tmp_path, [*values, END], voters=(1, 2, 3))
    write_snapshot(directory, 4, values)
    metadata = metadata_of(tmp_path)
    assert metadata.undecided == {ORDERS}
    assert metadata.image.configs_of(ORDERS) == {"retention.ms": "1"}


def test_voters_are_those_of_the_log_else_of_the_quorum_state_else_of_the_leader(
    tmp_path: Path,
) -> None:
    directory = write_metadata_log(tmp_path, [topic_record("orders")], voters=(1,))
    assert not metadata_of(tmp_path).undecided
    state = {**QUORUM_STATE, "currentVoters": [{"voterId": 1}, {"voterId": 2}]}
    (directory / "quorum-state").write_text(json.dumps(state))
    assert metadata_of(tmp_path).undecided == {ORDERS}
    batches = [leader_change(0, (1, 2)), voters_batch(1, (1,)), data_batch(2, [retention("1")])]
    write_partition(tmp_path, {0: batches}, name=METADATA)
    assert not metadata_of(tmp_path).undecided
    batches = [leader_change(0, (1,)), voters_batch(1, (1, 2)), data_batch(2, [retention("1")])]
    write_partition(tmp_path, {0: batches}, name=METADATA)
    assert metadata_of(tmp_path).undecided == {ORDERS}


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"data_version": 2}', '{"data_version": 0}']
    + [
        json.dumps(QUORUM_STATE | {"currentVoters": json.loads(each)})
        for each in ("7", "[1]", "[{}]", '[{"voterId": true}]')
    ],
)
def test_a_broken_quorum_state_is_an_error(tmp_path: Path, text: str) -> None:
    directory = write_metadata_log(tmp_path, [topic_record("orders")])
    (directory / "quorum-state").write_text(text)
    with pytest.raises(CorruptCheckpointError, match="quorum state"):
        metadata_of(tmp_path)


def test_offsets_that_are_missing_are_an_error(tmp_path: Path) -> None:
    batches = [leader_change(0, (1,)), data_batch(3, [topic_record("orders")])]
    write_partition(tmp_path, {0: batches}, name=METADATA)
    with pytest.raises(InvalidRecordError, match="offsets 1 to 2 are missing"):
        metadata_of(tmp_path)


def test_a_log_that_begins_after_its_snapshot_is_an_error(tmp_path: Path) -> None:
    directory = write_metadata_log(tmp_path, [topic_record("orders")], base=7)
    write_snapshot(directory, 7, [])
    assert metadata_of(tmp_path).end_offset == 9
    write_snapshot(directory, 7, []).rename(directory / f"{6:020d}-0000000000.checkpoint")
    write_log_start_offsets(tmp_path, {("__cluster_metadata", 0): 7})
    with pytest.raises(Exception, match="begins at offset 7, and no snapshot"):
        metadata_of(tmp_path)


def test_a_snapshot_without_its_last_batches_is_an_error(tmp_path: Path) -> None:
    directory = write_metadata_log(tmp_path, [topic_record("orders")])
    write_snapshot(directory, 1, [], has_footer=False)
    with pytest.raises(CorruptRecordError, match="does not end with its footer"):
        metadata_of(tmp_path)


def test_damage_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    directory = write_metadata_log(tmp_path, [topic_record("orders"), retention("1")])
    (log,) = directory.glob("*.log")
    flip(log, -3)
    with pytest.raises(CorruptRecordError, match=log.name):
        metadata_of(tmp_path)
