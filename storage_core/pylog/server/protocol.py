"""What every API of the server is declared with: messages, versions, error codes.

A request begins with its header: API key, version, correlation id, client id. Flexible versions
have tagged fields after them. A response begins with the correlation id, and tagged fields in
flexible versions; ApiVersions never has these, since a client does not know the version yet.

Source: ApiKeys, Errors, RequestHeader, ApiMessageTypeGenerator (Kafka 4.4); KIP-482, KIP-511.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pylog.errors import InvalidRecordError, LogStorageError
from pylog.internal_topics.message_reader import Readable, TooManyElementsError, read_message
from pylog.internal_topics.message_writer import Writable, write_message_in_slices
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from pylog.internal_topics.message_writer import FileRange
    from pylog.internal_topics.schema import Message

    Request = dict[str, Any]
    Response = dict[str, Any]
    Handler = Callable[[Request, "RequestContext"], Response | Awaitable[Any]]


_T = TypeVar("_T")
CONSUMER_REPLICA_ID = -1
NO_EPOCH = -1
_UNSTABLE_VERSIONS = {22: 6}
"""The first version of InitProducerId that is not stable yet (KIP-939)."""
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Errors(IntEnum):
    """The error codes that the server answers with."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    INVALID_TOPIC_EXCEPTION = 17
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNKNOWN_TOPIC_ID = 100
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """An API: its key, and the messages of its valid versions."""

    key: int
    name: str
    request: Message
    response: Message

    @property
    def versions(self) -> range:
        """The versions that are answered: those that brokers advertise."""
        known = self.request.versions
        return range(known.start, min(known.stop, _UNSTABLE_VERSIONS.get(self.key, known.stop)))


def parse_apis(keys: Mapping[str, int], text: str) -> dict[str, Api]:
    """Return APIs by name; ``text`` holds ``<name>Request`` and ``<name>Response`` of each."""
    messages = parse_messages(text)
    return {
        name: Api(key, name, messages[f"{name}Request"], messages[f"{name}Response"])
        for name, key in keys.items()
    }


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Whose request it is (Kafka: RequestContext)."""

    api: Api
    version: int
    client_id: str | None
    client_host: str
    host: str  # this and the next: the advertised listener, to which the client is to connect
    port: int
    connection: int = 0  # unique while the server runs
    is_large: bool = False  # whether the request takes room that others wait for
    has_fetched: bool = False  # whether the client has taken the response to an earlier fetch


class RequestHeader(NamedTuple):
    """The header that a request begins with."""

    version: int
    correlation_id: int
    client_id: str | None


_HEADER = struct.Struct(">hhi")
_HEADERS = parse_messages("""
    ClientId 0
      clientId string?
    Tags 0 flexible=0
""")
_API_VERSIONS_KEY = 18


class RequestParseError(LogStorageError):
    """A request that a broker would close the connection for."""


def read_header(readable: Readable, apis: Mapping[int, Api]) -> tuple[RequestHeader, Api]:
    """Return the header of a request, and its API, which must be among ``apis``."""
    try:
        key, version, correlation_id = _HEADER.unpack(readable.array(_HEADER.size))
        # Kafka's header keeps the client id in its old form, whatever the version.
        client_id = _read(_HEADERS["ClientId"], readable, 0)["clientId"]
        api = apis.get(key)
        if api is None:
            raise RequestParseError(f"API key {key} is not one of this server")
        if version in api.request.flexible_versions:
            _read(_HEADERS["Tags"], readable, 0)
    except InvalidRecordError as error:
        raise RequestParseError(f"request header cannot be read: {error.reason}") from error
    return RequestHeader(version, correlation_id, client_id), api


def read_request(api: Api, readable: Readable, version: int) -> dict[str, Any]:
    """Return the request with all fields of its schema; those it lacks have their defaults.

    `TooManyElementsError` is for the caller, who has set that limit.
    """
    if version not in api.versions:
        raise RequestParseError(
            f"{api.name} has no version {version}, expected {api.versions.start} to "
            f"{api.versions.stop - 1}"
        )
    try:
        # Like a broker, and unlike the rest of pylog, it takes bytes after the message: librdkafka
        # sends some after a Metadata request for all topics.
        return read_message(
            api.request, readable, version, LATEST_KAFKA_VERSION, fills_defaults=True
        )
    except TooManyElementsError:
        raise
    except InvalidRecordError as error:
        reason = f"{api.name} request of version {version} cannot be read: {error.reason}"
        raise RequestParseError(reason) from error


def _read(message: Message, readable: Readable, version: int) -> dict[str, Any]:
    return read_message(message, readable, version, LATEST_KAFKA_VERSION)


def response_pieces(
    api: Api, version: int, correlation_id: int, response: Mapping[str, Any]
) -> list[bytearray | FileRange]:
    """Return a small response with its header, without the size before it."""
    writable = Writable()
    for _ in response_slices(writable, api, version, correlation_id, response):
        pass
    return writable.finished()


def response_slices(
    writable: Writable, api: Api, version: int, correlation_id: int, response: Mapping[str, Any]
) -> Iterator[None]:
    """Write a response; see `write_message_in_slices`."""
    writable.buffer += correlation_id.to_bytes(4, signed=True)
    if version in api.response.flexible_versions and api.key != _API_VERSIONS_KEY:
        writable.buffer.append(0)
    return write_message_in_slices(writable, api.response, response, version)


def first_times(
    asked: Iterable[_T], name_of: Callable[[_T], object] = lambda each: each
) -> list[tuple[_T, bool]]:
    """Return what is asked for, and whether it is for the first time.

    A small request that names one large thing again and again would have a huge answer.
    """
    seen = set()
    found = []
    for each in asked:
        name = name_of(each)
        found.append((each, name not in seen))
        seen.add(name)
    return found


def each_partition(topics: list[Request]) -> Iterator[tuple[str, Request]]:
    """Yield each partition of a request with its topic's name."""
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic["name"], partition
