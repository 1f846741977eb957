"""Values of server.properties that Kafka 4 refuses, one a row; what it refuses its classes say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("line", "refused_by"),
    [
        ("log.segment.bytes=1048575", ["4.0", "4.3", "4.4"]),
        ("log.segment.bytes=1048576", []),
        ("log.segment.bytes=14", ["4.0", "4.3", "4.4"]),
        ("metadata.log.segment.bytes=8388607", ["4.3", "4.4"]),
        ("metadata.log.segment.bytes=8388608", []),
        ("num.replica.fetchers=0", ["4.3", "4.4"]),
        ("remote.log.manager.copier.thread.pool.size = -1", ["4.3", "4.4"]),
        ("controller.quorum.fetch.timeout.ms=-1", ["4.3", "4.4"]),
        ("num.replica.fetchers=x", []),
        ("zookeeper.session.timeout.ms=0", []),
    ],
)
def test_doctor_says_with_which_versions_a_broker_does_not_start(
    tmp_path: Path, line: str, refused_by: list[str]
) -> None:
    write_partition(tmp_path / "logs", {0: [batch_v2(plain_records(0, 5))]})
    path = tmp_path / "server.properties"
    path.write_text(f"node.id=1\n{line}\n")
    settings = pylog.ServerProperties.read(path)
    found = []
    for version in ("3.9", "4.0", "4.3", "4.4"):
        report = pylog.doctor(tmp_path / "logs", kafka_version=version, server_properties=settings)
        kinds = [each for each in report.findings if each.code == "unusable_broker_config"]
        assert all(each.path == str(path) and "line 2: " in each.message for each in kinds)
        found += [version] * len(kinds)
        assert bool(kinds) == any(each.code == "unusable_broker_config" for each in report.refusals)
    assert found == refused_by
