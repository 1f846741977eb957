"""What changes a cluster is refused: the answers of a broker whose authorizer allows only reading.

Produce is refused topic by topic with TOPIC_AUTHORIZATION_FAILED, and so are topics that are to be
made, deleted or changed. Where the response has room for a message, it says why. A producer with
acks=0 expects no response: its connection is closed, as a broker does at an error. An idempotent
producer asks for its id first, and is refused there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.internal_topics.message_writer import EachOf
from pylog.server.messages import APIS
from pylog.server.protocol import Errors, RequestParseError
from pylog.server.rate_limited_log import server_logger

if TYPE_CHECKING:
    from pylog.server.protocol import Api, Handler, Request, RequestContext, Response

_LOGGER = server_logger(__name__)
_MESSAGE = "pylog serve is read-only: nothing in the log directory is changed"
_TOPIC_ERROR = {"errorCode": Errors.TOPIC_AUTHORIZATION_FAILED, "errorMessage": _MESSAGE}
_SECURITY_DISABLED = 54
_NO_ACKS = 0


def refusals() -> dict[Api, Handler]:
    """Return the handlers of all APIs that change something, and of ACLs and quotas."""
    return {
        APIS["Produce"]: _produce,
        APIS["InitProducerId"]: _init_producer_id,
        APIS["CreateTopics"]: lambda request, _: {"topics": EachOf(_named, request["topics"])},
        APIS["DeleteTopics"]: _delete_topics,
        APIS["DeleteRecords"]: _delete_records,
        APIS["CreatePartitions"]: lambda request, _: {"results": EachOf(_named, request["topics"])},
        APIS["AlterConfigs"]: _alter_configs,
        APIS["IncrementalAlterConfigs"]: _alter_configs,
        APIS["DescribeAcls"]: lambda *_: {
            "errorCode": _SECURITY_DISABLED,
            "errorMessage": "No Authorizer is configured.",
            "resources": [],
        },
        APIS["DescribeClientQuotas"]: lambda *_: {"entries": []},
    }


def _produce(request: Request, context: RequestContext) -> Response:
    if request["acks"] == _NO_ACKS:
        raise RequestParseError(f"a producer with acks=0 is refused: {_MESSAGE}")
    return {"responses": EachOf(_produced, request["topicData"])}


def _init_producer_id(request: Request, context: RequestContext) -> Response:
    # The response has no room for a message, and producers are idempotent by default.
    _LOGGER.warning("a producer of %s is refused: %s", context.client_host, _MESSAGE)
    return {"errorCode": Errors.CLUSTER_AUTHORIZATION_FAILED, "producerEpoch": -1}


def _produced(topic: Request) -> Response:
    return {
        "name": topic["name"],
        "topicId": topic["topicId"],
        "partitionResponses": EachOf(
            lambda each: {
                "index": each["index"],
                "baseOffset": -1,
                **_TOPIC_ERROR,
                "recordErrors": [],
            },
            topic["partitionData"],
        ),
    }


def _named(topic: Request) -> Response:
    return {"name": topic["name"], **_TOPIC_ERROR, "configs": []}


def _delete_topics(request: Request, context: RequestContext) -> Response:
    named = [{"name": name} for name in request["topicNames"]]
    asked = [{"name": each["name"], "topicId": each["topicId"]} for each in request["topics"]]
    return {"responses": EachOf(lambda each: {**each, **_TOPIC_ERROR}, named + asked)}


def _delete_records(request: Request, context: RequestContext) -> Response:
    return {"topics": EachOf(_kept_records, request["topics"])}


def _kept_records(topic: Request) -> Response:
    return {
        "name": topic["name"],
        "partitions": EachOf(
            lambda each: {
                "partitionIndex": each["partitionIndex"],
                "lowWatermark": -1,
                "errorCode": Errors.TOPIC_AUTHORIZATION_FAILED,
            },
            topic["partitions"],
        ),
    }


def _alter_configs(request: Request, context: RequestContext) -> Response:
    return {"responses": EachOf(_unchanged, request["resources"])}


def _unchanged(resource: Request) -> Response:
    return {
        "errorCode": Errors.CLUSTER_AUTHORIZATION_FAILED,
        "errorMessage": _MESSAGE,
        "resourceType": resource["resourceType"],
        "resourceName": resource["resourceName"],
    }
