from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

CASE = "4.4.0/controller-logdir"


def test_lines_say_who_votes_and_which_kafka_starts(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("info", golden_root.case(CASE))
    assert done.status == 0
    assert done.lines[0] == "Cluster: bbgTT3A5rkm9iGMDXIMjTw  Node: 3"
    assert "Starts on Kafka: 4.4" in done.lines
    assert "Quorum: controller 1 is the only voter; given: none" in done.lines
    assert "  user alice: SCRAM-SHA-256" in done.lines
    assert "  quota of client-id <default>: producer_byte_rate=2048" in done.lines
    assert "  ACL: DENY User:* WRITE on TOPIC PREFIXED inv from 10.1.2.0/30" in done.lines


def test_json_has_the_members_that_programs_rely_on(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("info", golden_root.case(CASE), "--json")
    document = json.loads(done.output)
    assert (document["clusterId"], document["nodeId"]) == ("bbgTT3A5rkm9iGMDXIMjTw", 3)
    assert document["voters"] == [
        {
            "id": 1,
            "directoryId": "aoDXEGvVRmWk6jWtZrBz4w",
            "endpoints": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 25041}],
        }
    ]
    assert document["quorum"] == {"needs": 1, "has": []}
    assert document["startsOn"] == ["4.4"]
    assert document["schemaVersion"] == 1


def test_no_part_of_a_credential_is_printed(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    case = golden_root.case(CASE)
    path = f"{case}/__cluster_metadata-0/{275:020d}-{1:010d}.checkpoint"
    dumped = pylog_run("dump", "--cluster-metadata-decoder", path).output.decode()
    credentials = [
        line.split("payload: ", 1)[1]
        for line in dumped.splitlines()
        if '"USER_SCRAM_CREDENTIAL_RECORD"' in line
    ]
    assert credentials
    printed = b"".join(pylog_run("info", case, *more).output for more in ((), ("--json",)))
    for each in credentials:
        fields = json.loads(each)["data"]
        for name in ("salt", "storedKey", "serverKey"):
            assert fields[name].encode() not in printed
