"""A real broker serves what ``pylog demo`` unpacks, and what ``pylog doctor`` repairs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.commands.demo import demo

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.conftest import NewBroker

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("which", ["intact", "repaired"])
def test_a_broker_serves_the_sample_directory(
    new_broker: NewBroker, tmp_path: Path, which: str
) -> None:
    assert demo.callback is not None
    demo.callback(str(tmp_path / "kafka"))
    pylog.repair_copy(tmp_path / "kafka" / "damaged", tmp_path / "kafka" / "repaired")
    logs = tmp_path / "kafka" / which
    expected: dict[int, list[int]] = {0: [], 1: []}
    for record in pylog.scan(logs, topics="orders").records():
        expected[record.partition].append(record.offset)
    found = new_broker(log_dir=logs).consume("orders", partitions=2)
    assert {number: [each.offset for each in records] for number, records in found.items()} == (
        expected
    )
    assert sum(map(len, expected.values())) == {"intact": 106, "repaired": 86}[which]
