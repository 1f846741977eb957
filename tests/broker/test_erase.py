"""Brokers start on what was erased from, and serve all that was not; Kafka's tool sees no rest."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.server_log import lines_of_logs, log_lines_of_trouble
from tests.broker.test_extract import ISOLATIONS, PARTITIONS, TOPIC, source
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_tools import dump_log_segments

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.test_extract import Source
    from tests.support.batches import Stored

__all__ = ["source"]  # the fixture
pytestmark = pytest.mark.broker

KEYS = frozenset(b"k%d" % number for number in range(0, 270, 7))


def is_mine(record: Stored) -> bool:
    """Whether a record is erased: of some keys, or of what one round of transactions wrote."""
    return record.key in KEYS or (record.value or b"").startswith(b"3 0 ")


def test_a_broker_serves_all_that_was_not_erased(source: Source, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(source.broker.log_dir, logs)
    by_key = pylog.jobs.erase(logs, pylog.RecordFilter(keys=KEYS), topics=[TOPIC])
    by_value = pylog.jobs.erase(
        logs, pylog.RecordFilter.matching(value_regex="^3 0 "), topics=[TOPIC]
    )
    assert (by_key.remaining, by_value.remaining) == ([], [])
    gone = [each for records in source.records.values() for each in records if is_mine(each)]
    done = [*by_key.partitions, *by_value.partitions]
    assert sum(each.records for each in done) == len(gone) > 0
    files = [path for each in logs.glob(f"{TOPIC}-*") for path in each.glob("*.log")]
    raw = b"".join(path.read_bytes() for path in files)
    dump = dump_log_segments(files, "--print-data-log", version=source.broker.version)
    kept = {each.value for each in source.records[0] if not is_mine(each)}
    assert any(f"payload: {each.decode()}\n" in dump for each in kept if each)
    for each in gone:
        assert each.value is not None
        assert f"payload: {each.value.decode()}\n" not in dump
        assert each.value + b"\0" not in raw
    broker = KafkaBroker(tmp_path / "broker", version=source.broker.version, log_dir=logs)
    with broker:
        for isolation in ISOLATIONS:
            found = broker.consume(TOPIC, PARTITIONS, isolation)
            for partition, end in source.ends.items():
                whole = source.visible(partition, 0, end, isolation, is_aborted=False)
                assert found[partition] == [each for each in whole if not is_mine(each)]
        with broker.producer() as client:
            for partition, end in source.ends.items():
                sent = client.send(TOPIC, b"after", partition=partition).get(30)
                assert sent.offset == end
        broker.stop()
    of_logs = lines_of_logs(broker.server_log)
    assert [each for each in log_lines_of_trouble(broker.server_log) if each in of_logs] == []
    assert pylog.doctor(logs).verdict.would_start


def test_a_broker_serves_what_was_masked(source: Source, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(source.broker.log_dir, logs)
    rules = tmp_path / "rules.toml"
    rules.write_text("[[mask]]\nvalue = true\nreplace = 'masked'")
    where = pylog.RecordFilter(keys=KEYS)
    masking = pylog.jobs.read_mask_rules(rules)
    done = pylog.jobs.mask(logs, masking, where=where, topics=[TOPIC])
    assert done.remaining == []
    masked = [each for found in source.records.values() for each in found if each.key in KEYS]
    assert sum(each.records for each in done.partitions) == len(masked) > 0
    files = [path for each in logs.glob(f"{TOPIC}-*") for path in each.glob("*.log")]
    dump = dump_log_segments(files, "--print-data-log", version=source.broker.version)
    assert dump.count("payload: masked\n") == len(masked)
    for each in masked:
        assert each.value is not None
        assert f"payload: {each.value.decode()}\n" not in dump
    broker = KafkaBroker(tmp_path / "broker", version=source.broker.version, log_dir=logs)
    with broker:
        for isolation in ISOLATIONS:
            found = broker.consume(TOPIC, PARTITIONS, isolation)
            for partition, end in source.ends.items():
                whole = source.visible(partition, 0, end, isolation, is_aborted=False)
                assert found[partition] == [
                    each._replace(value=b"masked") if each.key in KEYS else each for each in whole
                ]
        broker.stop()
    of_logs = lines_of_logs(broker.server_log)
    assert [each for each in log_lines_of_trouble(broker.server_log) if each in of_logs] == []
