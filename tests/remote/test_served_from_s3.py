"""A log directory in a bucket, served to a Kafka client: it is read and copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.golden import differences, read_expected
from tests.support.served_clients import READERS, Wanted

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot
    from tests.support.s3_server import Bucket
    from tests.support.served_clients import Line


def test_a_client_reads_what_the_broker_served(golden_root: GoldenRoot, bucket: Bucket) -> None:
    partition = golden_root.partition("4.3.0/txn:payments-0")
    bucket.upload(partition.log_directory, "served/logs")
    path = partition.expected_path("committed")
    assert path is not None
    expected = read_expected(path)
    lines: list[Line] = []
    with pylog.serve(bucket.uri("served/logs")) as server:
        end = expected[-1]["offset"] + 1
        wanted = Wanted(partition.topic, partition.partition, 0, end)
        READERS["librdkafka"](server.address, wanted, "read_committed", lines)
    assert differences(expected, lines) == []
