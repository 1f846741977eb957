"""Owners and modes: doctor says what a broker that runs as another user makes of them.

Whoever runs the tests is root, who may do everything: so the broker runs as a user of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka.errors import KafkaError

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.faults.permissions import USER, give, permission_harms
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.faults.partitions import DirectoryHarm

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user"),
]

HARMS = permission_harms("harm-0")
RECORDS = 150
_SECONDS = 60.0


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def base(request: pytest.FixtureRequest, kafka_is_here: None) -> Iterator[tuple[str, Path]]:
    """Give a version, and a log directory of it with a topic; any user can look into its place."""
    with tempfile.TemporaryDirectory(prefix="pylog-permissions-") as name:
        place = Path(name)
        place.chmod(0o755)
        with KafkaBroker(place / "base", version=request.param) as broker:
            size = "segment.bytes" if request.param.startswith("3.") else "internal.segment.bytes"
            broker.create_topic("harm", config={size: "16384", "retention.ms": "-1"})
            with broker.producer(batch_size=1200, linger_ms=20) as producer:
                for number in range(RECORDS):
                    producer.send("harm", b"%06d" % number * 40)
                producer.flush()
            broker.stop()
        yield request.param, place


@pytest.mark.thorough(one_in=17)
@pytest.mark.parametrize("harm", HARMS, ids=[name for name, _ in HARMS])
def test_what_a_broker_may_not_do_is_said(base: tuple[str, Path], harm: DirectoryHarm) -> None:
    version, place = base
    shutil.rmtree(place / "run", ignore_errors=True)
    (place / "run").mkdir()
    (place / "run").chmod(0o777)
    logs = place / "run" / "logs"
    subprocess.run(["cp", "-a", str(place / "base" / "logs"), str(logs)], check=True)
    give(logs, USER)
    harm[1](logs)
    report = pylog.doctor(logs, as_user=USER, kafka_version=version.rpartition(".")[0])
    broker = KafkaBroker(place / "run", version=version, log_dir=logs, user=USER)
    broker.is_to_be_formatted = False
    try:
        is_up = stays_up(broker, is_to_end=bool(report.refusals))
        assert is_up == (not report.refusals), (report.refusals, broker.server_log[-3000:])
        if is_up:
            assert records_in(broker) == RECORDS
    finally:
        broker.kill()


def stays_up(broker: KafkaBroker, *, is_to_end: bool) -> bool:
    """Start a broker; return whether it serves, after a while if it is to end."""
    try:
        broker.start()
    except BrokerFailedError:
        return False
    if is_to_end:
        with suppress(KafkaError), broker.consumer([("harm", 0)]) as consumer:
            # What opens the time indexes, as retention does.
            consumer.offsets_for_times(dict.fromkeys(consumer.assignment(), 1))
    deadline = time.monotonic() + _SECONDS
    while is_to_end and broker.is_running and time.monotonic() < deadline:
        time.sleep(0.1)
    return broker.is_running


def records_in(broker: KafkaBroker) -> int:
    count = 0
    with broker.consumer([("harm", 0)]) as consumer:
        deadline = time.monotonic() + _SECONDS
        while count < RECORDS and time.monotonic() < deadline:
            count += sum(map(len, consumer.poll(timeout_ms=300).values()))
    return count
