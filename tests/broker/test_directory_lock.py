"""A log directory has one owner: a broker or pylog, and whoever comes second gets an error."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogLockedError
from pylog.log.log_manager import LogManager
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.kafka_broker import BrokerFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.conftest import NewBroker

pytestmark = pytest.mark.broker


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_broker_and_an_owner_refuse_each_other(new_broker: NewBroker, version: str) -> None:
    broker = new_broker(version)
    broker.create_topic("orders")
    with broker.producer() as producer:  # all files are there once a record is
        producer.send("orders", b"value").get(30)
    log_directory = broker.log_dir
    before = contents(broker.partition_directory("orders"))
    with pytest.raises(LogLockedError) as raised:
        LogManager([log_directory]).startup()
    assert raised.value.process_id == broker.process_id
    program = "import sys; from pylog.cli.main import main; sys.argv[0] = 'pylog'; main()"
    command = [sys.executable, "-c", program, "append", str(log_directory), "--topic", "orders"]
    refused = subprocess.run(
        command, input=b'{"key": null, "value": "eA=="}', capture_output=True, check=False
    )
    assert refused.returncode == 2
    (line,) = refused.stderr.decode().splitlines()
    assert f"locked by process {broker.process_id}:" in line
    assert contents(broker.partition_directory("orders")) == before

    broker.stop()
    with LogManager([log_directory]), pytest.raises(BrokerFailedError):
        broker.start()
    broker.start()
    assert broker.is_running
