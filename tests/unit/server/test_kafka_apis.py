"""Which requests are answered, and how others are refused."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from pylog.internal_topics.message_writer import write_message
from pylog.server.messages import APIS
from tests.support.raw_client import RawClient
from tests.unit.server.served_sockets import _still_answers

if TYPE_CHECKING:
    from pylog.results import BrokerServer


def test_a_newer_client_is_told_which_versions_there_are(server: BrokerServer) -> None:
    with RawClient(server.address) as client:
        client.send_frame(struct.pack(">hhih", 18, 99, 5, -1))
        response = client.receive_frame()
    assert response[:6] == struct.pack(">ih", 5, 35)
    assert len(response) > 100


def test_a_version_that_does_not_exist_closes_the_connection(server: BrokerServer) -> None:
    for key, version in ((3, 14), (1, 3), (999, 0), (4, 0)):
        with RawClient(server.address) as client:
            client.send_frame(struct.pack(">hhih", key, version, 5, -1))
            with pytest.raises(ConnectionError):
                client.receive_frame()


def test_requests_of_one_connection_are_answered_in_their_order(server: BrokerServer) -> None:
    body = write_message(APIS["Metadata"].request, {"topics": None}, 1)
    with RawClient(server.address) as client:
        for number in range(20):
            client.send_frame(struct.pack(">hhih", 3, 1, number, -1) + body)
        for number in range(20):
            assert client.receive_frame()[:4] == struct.pack(">i", number)


def test_what_changes_something_is_refused(server: BrokerServer) -> None:
    with RawClient(server.address) as client:
        topic: dict[str, Any] = {"name": "payments", "numPartitions": 1, "replicationFactor": 1}
        made = client.ask("CreateTopics", 7, {"topics": [topic], "timeoutMs": 1})["topics"][0]
        assert (made["errorCode"], made["errorMessage"][:11]) == (29, "pylog serve")
        data = [{"name": "payments", "partitionData": [{"index": 0, "records": b"x"}]}]
        answer = client.ask("Produce", 9, {"acks": 1, "timeoutMs": 1, "topicData": data})
        assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == 29


def test_an_idempotent_producer_is_told_that_nothing_is_written(
    server: BrokerServer, caplog: pytest.LogCaptureFixture
) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": server.address, "enable.idempotence": True, "log_level": 0}
    )
    producer.produce("payments", b"x", on_delivery=lambda *_: None)
    with pytest.raises((confluent_kafka.KafkaException, SystemError)) as failure:
        producer.flush(20)
    reasons = f"{failure.value} {failure.value.__cause__}"
    assert "CLUSTER_AUTHORIZATION_FAILED" in reasons
    assert caplog.messages[0] == (
        "a producer of 127.0.0.1 is refused: pylog serve is read-only: nothing in the log "
        "directory is changed"
    )
    with RawClient(server.address) as client:
        for version in APIS["InitProducerId"].versions:
            asked = {"transactionalId": None, "transactionTimeoutMs": 1}
            answer = client.ask("InitProducerId", version, asked)
            assert (answer["errorCode"], answer["producerId"]) == (31, -1)


def test_a_producer_that_expects_no_response_is_refused_by_a_closed_connection(
    server: BrokerServer,
) -> None:
    data = [{"name": "payments", "partitionData": [{"index": 0, "records": b"x"}]}]
    with RawClient(server.address) as client:
        client.send("Produce", 9, {"acks": 0, "timeoutMs": 1, "topicData": data})
        with pytest.raises(ConnectionError):
            client.receive_frame()
    _still_answers(server)
