"""What DescribeConfigs tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path


def test_configurations_are_told_with_their_sources(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", partitions=1, properties={"cleanup.policy": "compact"})
    properties = tmp_path / "server.properties"
    properties.write_text("log.retention.ms=5000\n")
    resources = [{"resourceType": 2, "resourceName": "orders", "configurationKeys": None}]
    with (
        pylog.serve(directory, server_properties=pylog.ServerProperties.read(properties)) as server,
        RawClient(server.address) as client,
    ):
        (found,) = client.ask("DescribeConfigs", 4, {"resources": resources})["results"]
    values = {each["name"]: (each["value"], each["configSource"]) for each in found["configs"]}
    assert values["cleanup.policy"] == ("compact", 1)
    assert values["retention.ms"] == ("5000", 4)
    assert values["segment.bytes"] == (str(1 << 30), 5)
