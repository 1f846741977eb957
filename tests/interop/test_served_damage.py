"""What clients get of damaged partitions: the records that are intact, an error, and no lie.

The faults are those of `tests.support.faults`, in copies of golden partitions; what a record
has to be is what a broker once served of it.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import aiokafka.errors
import confluent_kafka
import pytest

import pylog
from pylog.errors import LogStorageError
from tests.golden.test_golden_partitions import SERVED, lines_of
from tests.golden.test_injected_faults import copy_of
from tests.interop.test_served_to_other_languages import LIMITS
from tests.support.faults import LOG_FAULTS
from tests.support.foreign_clients import GO_CLIENTS, JAVA_CLIENTS, ForeignClientError
from tests.support.golden import differences, read_expected
from tests.support.served_clients import READERS, Wanted, kafka

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.damage import ReadModeName
    from tests.conftest import Counted, HowMany
    from tests.interop.conftest import ForeignReaders
    from tests.support.faults import Fault
    from tests.support.faults.logs import SoundPartition
    from tests.support.golden import GoldenPartition, GoldenRoot
    from tests.support.served_clients import Line, Reader

CLIENT_ERRORS = (
    confluent_kafka.KafkaException,
    kafka.errors.KafkaError,
    aiokafka.errors.KafkaError,
    ForeignClientError,
)
MOST_DRAWS = 200
ALL_SEEDS, SEEDS_OF_OTHERS = 16, 4


def _inject(
    fault: Fault, golden_root: GoldenRoot, directory: Path, random: Random, client: str
) -> tuple[GoldenPartition, SoundPartition]:
    readable = [each for each in SERVED if each not in LIMITS.get(client, ())]
    for _ in range(MOST_DRAWS):
        partition = golden_root.partition(random.choice(readable))
        copy = copy_of(partition, directory)
        if fault.put_into(copy, random) is not None:
            return partition, copy
    message = f"no partition was found that {fault} can be done to"
    raise AssertionError(message)


def _scanned(directory: Path, mode: ReadModeName) -> tuple[list[Line], LogStorageError | None]:
    """Return the records up to the first damage, and that; all intact ones with DROPMALFORMED."""
    lines: list[Line] = []
    try:
        scan = pylog.scan(
            directory,
            mode=mode,
            timestamp_unit="ms",
            include_headers=True,
            include_batch_metadata=True,
        )
        for batch in scan.to_batches():
            lines += lines_of(batch)
    except LogStorageError as error:
        return lines, error
    return lines, None


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize("fault", LOG_FAULTS, ids=str)
def test_no_client_gets_a_record_that_differs_and_none_hangs(
    golden_root: GoldenRoot,
    tmp_path: Path,
    how_many: HowMany,
    counted: Counted,
    client: str,
    fault: Fault,
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(how_many(1, ALL_SEEDS)):
        outcomes += _outcomes(fault, client, READERS[client], golden_root, tmp_path, seed)
    counted(f"damaged partitions, {client}", outcomes)


@pytest.mark.thorough
@pytest.mark.parametrize("fault", LOG_FAULTS, ids=str)
@pytest.mark.parametrize(
    "client",
    [*GO_CLIENTS, *(pytest.param(each, marks=pytest.mark.broker) for each in JAVA_CLIENTS)],
)
def test_nor_does_one_in_another_language(
    golden_root: GoldenRoot,
    tmp_path: Path,
    foreign_readers: ForeignReaders,
    counted: Counted,
    client: str,
    fault: Fault,
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(SEEDS_OF_OTHERS):
        reader = foreign_readers(client)
        outcomes += _outcomes(fault, client, reader.read, golden_root, tmp_path, seed)
    counted(f"damaged partitions, {client}", outcomes)


def _outcomes(
    fault: Fault, client: str, read: Reader, root: GoldenRoot, folder: Path, seed: int
) -> Counter[str]:
    """Damage a partition, let a client read it in both modes, and say how that went."""
    outcomes: Counter[str] = Counter()
    random = Random(f"{fault} {client} {seed}")
    partition, copy = _inject(fault, root, folder / "logs", random, client)
    path = partition.expected_path("uncommitted")
    assert path is not None
    expected = {line["offset"]: line for line in read_expected(path)}
    for mode in ("FAILFAST", "DROPMALFORMED"):
        is_uncounted = str(fault) in ("no_records_counted", "too_many_records_counted")
        outcome = _read(read, partition, copy, expected, mode, is_uncounted=is_uncounted)
        outcomes[outcome] += 1
    return outcomes


def _read(
    read_partition: Reader,
    partition: GoldenPartition,
    copy: SoundPartition,
    expected: dict[int, Line],
    mode: ReadModeName,
    *,
    is_uncounted: bool,
) -> str:
    with pylog.serve(copy.directory, mode=mode) as server:
        start, end = _watermarks(server.address, partition)
        wanted = Wanted(partition.topic, partition.partition, start, end)
        lines: list[Line] = []
        outcome = "read to the end"
        try:
            read_partition(server.address, wanted, "read_uncommitted", lines)
        except CLIENT_ERRORS:
            outcome = "read up to an error"
        told = [_told(expected[line["offset"]], line) for line in lines]
        assert differences(told, lines) == []
        found, damage = _scanned(copy.directory, mode)
        if outcome == "read to the end":
            read, scanned = ([line["offset"] for line in each] for each in (lines, found))
            if is_uncounted:
                # A client that looks at the records, and not at their count, reads them all.
                assert set(scanned) <= set(read)
            else:
                assert damage is None
                assert read == scanned
        return f"{mode}: {outcome}"


def _told(expected: Line, line: Line) -> Line:
    """Return the fields of an expected record that a client tells."""
    shown = {**expected, "leaderEpoch": expected.get("leaderEpoch") or 0}
    return {name: shown[name] for name in shown if name in line or name.startswith("value")}


def _watermarks(address: str, partition: GoldenPartition) -> tuple[int, int]:
    options = {"group.id": "nobody", "isolation.level": "read_uncommitted"}
    client = confluent_kafka.Consumer({"bootstrap.servers": address, **options})
    try:
        where = confluent_kafka.TopicPartition(partition.topic, partition.partition)
        found: tuple[int, int] = client.get_watermark_offsets(where, timeout=60)
        return found
    finally:
        client.close()
