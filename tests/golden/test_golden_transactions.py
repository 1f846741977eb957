"""Table ``transactions`` of every golden partition is what Kafka's own tools said of it."""

from __future__ import annotations

import pytest

from tests.support.golden import (
    GoldenPartition,
    GoldenRoot,
    Holds,
    golden_partitions,
    read_expected,
)
from tests.support.kafka_dump import Fields, dumped_files, flag, optional_number
from tests.support.metadata_rows import Row, table_of

LIVE = [each for each in golden_partitions() if not each.endswith("-delete")]
SERVED = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)


# What follows Kafka's dump of a partition record by record, a transaction a producer at a time.
def transactions_as_dumped(partition: GoldenPartition) -> list[Row]:
    finished: list[Row] = []
    unfinished: dict[int, Row] = {}
    batch: Fields = {}
    for name, lines in dumped_files(partition).items():
        for fields in lines if name.endswith(".log") else ():
            is_record = "isRecord" in fields
            if not is_record:
                batch = fields  # the tool of 0.11 prints records alone, with their batch's fields
            if not flag(batch, "isTransactional"):
                continue
            producer = int(batch["producerId"])
            if "endTxnMarker" in fields:
                transaction = unfinished.pop(producer, {"producer_id": producer, "offsets": []})
                transaction["state"] = {"COMMIT": "committed", "ABORT": "aborted"}[
                    fields["endTxnMarker"]
                ]
                finished.append(transaction | {"marker_offset": int(fields["offset"])})
            elif not flag(batch, "isControl"):
                transaction = unfinished.setdefault(
                    producer, {"producer_id": producer, "offsets": [], "state": "open"}
                )
                if is_record or "baseOffset" not in fields:
                    transaction["offsets"].append(int(fields["offset"]))
                else:
                    transaction.setdefault("first_offset", int(fields["baseOffset"]))
                    transaction["last_offset"] = int(fields["lastOffset"])
    return [*finished, *unfinished.values()]


# The local folder of a tiered log begins at 178; the broker's snapshot of there has this one open.
BEGUN_BEFORE = {"4.3.0/tiered:archive-txn-0": 165}


def test_a_transaction_that_retention_has_cut_is_reported_with_its_first_offset(
    golden_root: GoldenRoot,
) -> None:
    for partition_id, first_offset in BEGUN_BEFORE.items():
        partition = golden_root.partition(partition_id)
        (row,) = (
            row
            for row in table_of(partition, "transactions")
            if row["begins_before_log_start"] is not False
        )
        assert (row["first_offset"], row["state"]) == (first_offset, "aborted")
        (entry,) = dumped_files(partition)["00000000000000000178.txnindex"]
        assert int(entry["firstOffset"]) == first_offset
        (producer,) = dumped_files(partition)["00000000000000000178.snapshot"]
        assert optional_number(producer["currentTxnFirstOffset"]) == first_offset


@pytest.mark.parametrize("partition_id", LIVE)
def test_transactions_are_those_of_kafkas_dump(golden_root: GoldenRoot, partition_id: str) -> None:
    partition = golden_root.partition(partition_id)
    kafkas = transactions_as_dumped(partition)
    ours = table_of(partition, "transactions")
    assert len(ours) == len(kafkas)
    for row, stated in zip(ours, kafkas, strict=True):
        is_cut = partition_id in BEGUN_BEFORE and row["first_offset"] == BEGUN_BEFORE[partition_id]
        for name in ("producer_id", "state", "marker_offset", "first_offset", "last_offset"):
            if name in stated and not (is_cut and name == "first_offset"):
                assert row[name] == stated[name]
        assert row["records"] == len(stated["offsets"])
        assert row["begins_before_log_start"] is is_cut


@pytest.mark.parametrize("partition_id", SERVED)
def test_read_committed_leaves_out_what_is_aborted_or_open(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    """Held against what Kafka's consumer was given in both isolation levels."""
    partition = golden_root.partition(partition_id)
    served: dict[str, set[int]] = {}
    for isolation in ("uncommitted", "committed"):
        path = partition.expected_path(isolation)
        assert path is not None
        served[isolation] = {line["offset"] for line in read_expected(path)}
    assert partition.offsets is not None
    left_out = served["uncommitted"] - served["committed"]
    rows = table_of(partition, "transactions")
    stable = partition.offsets.get("latestReadCommitted") or partition.offsets["latest"]
    undecided = [row["first_offset"] for row in rows if row["state"] == "open"]
    assert min(undecided, default=partition.offsets["latest"]) == stable
    for row in rows:
        if row["state"] == "aborted" and row["batches"] and row["marker_offset"] < stable:
            assert row["first_offset"] in left_out | (set(range(stable)) - served["uncommitted"])
        if row["state"] == "committed" and row["batches"] and row["last_offset"] < stable:
            assert row["first_offset"] not in left_out


def test_kafka_said_much_of_transactions(golden_root: GoldenRoot) -> None:
    """So that comparisons with nothing do not pass for comparisons."""
    dumped = [transactions_as_dumped(golden_root.partition(each)) for each in LIVE]
    assert sum(map(len, dumped)) > 250
